#pragma once
// Named phases of a computation. A phase is a scope; phases nest. Every word and operation is added
// to the innermost open phase. A phase that is entered again accumulates.
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

// A node of the phase tree. Its counts do not include those of its children.
struct PhaseNode {
  std::string name;
  PhaseNode* parent = nullptr;
  std::vector<std::unique_ptr<PhaseNode>> children;  // in the order of first entry
  IoCount io;
  Operations operations;
  ByKind<KindCounts> kinds;
  Index peak = 0;  // the most words live while it was innermost, those of outer phases included

  [[nodiscard]] std::string path() const;  // "phase1/S"; empty for the root
};

// The counts of one phase, or of several taken together.
struct PhaseCounts {
  std::string path;
  IoCount io;
  Operations operations;
  Index peak = 0;
  IoCount indices = {};  // those words of `io` that are indices

  // Sums words and operations and takes the larger peak. The path stays.
  PhaseCounts& operator+=(const PhaseCounts& other);
  friend bool operator==(const PhaseCounts&, const PhaseCounts&) = default;
};

// The counts of a run, on one machine or on several together: what a gate records of a user's
// kernel, which links memsim alone. A member without a value is unknown to the code that counted.
struct RunCounts {
  // By the clock of that code; memsim has none.
  struct Seconds {
    std::vector<double> phases;  // in the order of RunCounts::phases, at most `total` together
    double total = 0;

    friend bool operator==(const Seconds&, const Seconds&) = default;
  };

  // Of an inner level, from the innermost out: the same phases.
  struct Level {
    std::vector<PhaseCounts> phases;
    PhaseCounts total;

    friend bool operator==(const Level&, const Level&) = default;
  };

  std::vector<PhaseCounts> phases;  // no two with the same path
  PhaseCounts total;                // its path is empty
  std::vector<Level> inner = {};
  std::optional<Index> largest = std::nullopt;  // the most words that one machine moved
  std::optional<Index> span = std::nullopt;     // the largest Machine::span()
  std::optional<Seconds> seconds = std::nullopt;

  friend bool operator==(const RunCounts&, const RunCounts&) = default;
};

// The phases without inner phases, and those that moved or computed something outside of their
// inner phases, in the order of first entry. The sums of their words and operations are those of
// the tree; the peak of a phase that did neither is in total() alone.
std::vector<PhaseCounts> leaves(const PhaseNode& root);
// The sum of the tree, with an empty path and the largest peak.
PhaseCounts total(const PhaseNode& root);
// The same kind by kind: their words read and written add up to those of total(), and no peak of a
// kind is larger.
ByKind<KindCounts> total_by_kind(const PhaseNode& root);

// The scope of a phase. Requires: phases end in the reverse order of their beginning. A phase whose
// machine has died ends without effect.
class [[nodiscard]] Phase {
 public:
  [[nodiscard]] Phase(Machine& machine, std::string_view name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  friend class Machine;
  Machine* machine_;  // null after its death
};

}  // namespace redblue
