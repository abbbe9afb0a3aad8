#pragma once
// Records the words that a run moves, for kernels that do not report their arithmetic. A replayed
// cache then sees the kernel's reads and writes of slow memory.
//
// A word that is read is needed, and a word that is written is overwritten, row by row of its
// block. Slow matrices of the same name and shape have the same words. An element of weight w
// (Machine::weigh) is w words. With another weight it is other words.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/replay/accesses.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

class MoveAccesses final : public Follower {
 public:
  // Follows the machine while it lives.
  explicit MoveAccesses(Machine& machine) : Follower(machine) {}

  // Returns the accesses. Call it once, after the run. Throws: InputError after more than
  // most_accesses(1) accesses.
  [[nodiscard]] Accesses take();

 private:
  void follow(const Event& event) override;

  Accesses found_;
  PhasePath path_;
  // The units of the words of a matrix, by its name, rows, words in a row, and weight.
  std::map<std::tuple<std::string, Index, Index, Index>, std::vector<std::uint32_t>> units_;
};

}  // namespace redblue
