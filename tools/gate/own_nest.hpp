#pragma once
// Compares a user's kernel with the loop nest that it names (docs/nests.md). The sizes of the
// kernel are the extents and block sizes of the nest, by name. `given` has all of them, and M.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mask.hpp"
#include "runtime/gate/baseline.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

// The nest cannot be read, or it has no counts for the sizes of its kernel.
struct NestMisfit : UsageError {
  using UsageError::UsageError;
};

// Returns the counts of the nest in `file`, phase by phase. Statements outside phases have an empty
// path, as on a machine. `kernel` is for messages. Throws: NestMisfit; CountOverflow.
std::vector<PhaseCost> nest_words(const std::string& file, const std::string& kernel,
                                  const Arguments& given);

// A nest as text, and the mask of its problem. All queries and keys of the mask are live.
struct NestOfCaller {
  std::string text;
  std::string file;    // its name, for messages
  std::string remedy;  // how the caller gives a size that the nest needs: "give it to check()"
  Mask mask = {};
  bool only_its_sizes = false;  // compare() refuses arguments that the nest has no size for
};

// Notes the words of each matrix and the peak of each phase of a machine, while it lives.
class NestWitness final : public Follower {
 public:
  explicit NestWitness(Machine& machine) : Follower(machine), machine_(machine) {}

  // Requires: the run moved `counts`. Throws: std::logic_error if they are not the counts
  // of the nest. It names the phase, the matrix and the line of the nest. NestMisfit, also if a
  // kind of words other than sums weighs more than 1; CountOverflow.
  void compare(const std::string& file, const Point& run, const RunCounts& counts) const;
  void compare(const NestOfCaller& of, const Point& run, const RunCounts& counts) const;

 private:
  struct Seen {
    std::map<std::string, Index> reads = {}, writes = {};  // by matrix
    Index peak = -1;
    std::string tiles = {};  // at the peak
  };
  void follow(const Event& event) override;

  const Machine& machine_;
  PhasePath phase_;
  std::map<std::string, Seen> seen_;  // by path
};

}  // namespace redblue
