#pragma once
// Named phases of a computation. A phase is a scope, and phases nest. Every word and operation is
// added to the innermost open phase. A phase that is entered again accumulates.
//
//   const Phase phase(machine, "S");

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/holds.hpp"
#include "memsim/io_count.hpp"

namespace redblue {

class Machine;

// A node of the phase tree. Its counts exclude its children's.
struct PhaseNode {
  std::string name;
  PhaseNode* parent = nullptr;
  std::vector<std::unique_ptr<PhaseNode>> children;  // in order of first entry
  IoCount io;
  Operations operations;
  ByKind<KindCounts> kinds;
  Index peak = 0;  // the most live words while innermost, including outer phases' words

  [[nodiscard]] std::string path() const;  // "phase1/S"; empty for the root
};

// The counts of one phase, or of several phases combined.
struct PhaseCounts {
  std::string path;
  IoCount io;
  Operations operations;
  Index peak = 0;
  IoCount indices = {};  // the part of `io` that moved indices

  // Adds words and operations and takes the larger peak. The path does not change.
  PhaseCounts& operator+=(const PhaseCounts& other);
  friend bool operator==(const PhaseCounts&, const PhaseCounts&) = default;
};

// The counts of a run on one machine or on several combined. A gate records them for a user's
// kernel, which links memsim alone. A member without a value was not measured.
struct RunCounts {
  // Measured by the caller's clock: memsim has none.
  struct Seconds {
    std::vector<double> phases;  // in the order of RunCounts::phases; their sum is at most `total`
    double total = 0;

    friend bool operator==(const Seconds&, const Seconds&) = default;
  };

  // The counts of one inner level, for the same phases.
  struct Level {
    std::vector<PhaseCounts> phases;
    PhaseCounts total;

    friend bool operator==(const Level&, const Level&) = default;
  };

  std::vector<PhaseCounts> phases;  // each path occurs once
  PhaseCounts total;                // its path is empty
  // Innermost level first.
  std::vector<Level> inner = {};
  std::optional<Index> largest = std::nullopt;  // the most words that one machine moved
  std::optional<Index> span = std::nullopt;     // the largest Machine::span()
  std::optional<Seconds> seconds = std::nullopt;

  friend bool operator==(const RunCounts&, const RunCounts&) = default;
};

// Returns the phases without inner phases, and the phases that moved or computed something outside
// their inner phases, in order of first entry. Their words and operations sum to the tree's. The
// peak of any other phase is in total() alone.
std::vector<PhaseCounts> leaves(const PhaseNode& root);
// Returns the sum of the tree, with an empty path and the largest peak.
PhaseCounts total(const PhaseNode& root);
// Returns the same for each kind. The words of all kinds sum to total(), and no peak of a kind
// exceeds the total peak.
ByKind<KindCounts> total_by_kind(const PhaseNode& root);

// The scope of a phase. Requires: phases end in reverse order of their beginning. A phase that
// outlives its machine ends without effect.
class [[nodiscard]] Phase {
 public:
  [[nodiscard]] Phase(Machine& machine, std::string_view name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  friend class Machine;
  Machine* machine_;  // null after the machine's death
};

}  // namespace redblue
