#pragma once
// Named phases of a computation. A phase is a scope; phases nest; every word and operation
// is booked on the innermost open one. A phase entered again accumulates.
//
//   const Phase phase(machine, "S");

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/io_count.hpp"

namespace redblue {

class Machine;

// A node of the phase tree: what was booked on it alone, without its children.
struct PhaseNode {
  std::string name;
  PhaseNode* parent = nullptr;
  std::vector<std::unique_ptr<PhaseNode>> children;  // in the order of first entry
  IoCount io;
  Operations operations;
  Index peak = 0;  // the most words live, whoever owns them, while it was innermost

  [[nodiscard]] std::string path() const;  // "phase1/S"; empty for the root
};

// What one phase came to.
struct PhaseTotal {
  std::string path;
  IoCount io;
  Operations operations;
  Index peak = 0;

  friend bool operator==(const PhaseTotal&, const PhaseTotal&) = default;
};

// The phases in the order of first entry: all that have no phase within, and those that
// moved or computed something outside the phases within. Their sum is the sum of the tree.
std::vector<PhaseTotal> leaves(const PhaseNode& root);
// The whole tree as one: path empty, peak the largest.
PhaseTotal total(const PhaseNode& root);

// Requires: phases end in the reverse order of their beginning. The end of one whose machine has
// died is booked nowhere.
class [[nodiscard]] Phase {
 public:
  [[nodiscard]] Phase(Machine& machine, std::string_view name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  friend class Machine;
  Machine* machine_;  // null once it has died
};

}  // namespace redblue
