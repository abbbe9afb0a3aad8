#pragma once
// The report of `redblue bounds`: the lower bounds of a task, the active (largest) one, the kernel
// that moves the fewest words, and a check of the paper's statements at this size.

#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/report/as_rows.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/partition.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// The result of checking a statement O(...) that falls with M. The check compares the words moved
// at M with the words moved at 4 M.
enum class StatementVerdict {
  falls,  // the words fall with M, too
  // The words do not fall, but the statement is at least a fixed share of them in its whole range.
  within_constant,
  // The words do not fall, and the statement falls below every fixed share of them.
  refuted,
  M_outside,      // the statement does not cover this M, or m != n
  next_M_outside  // the statement does not cover 4 M
};

// A statement O(...) of the paper, and the words moved by the algorithm that it describes, both at
// M and at 4 M. The statement is evaluated without its constant and rounded down.
struct Statement {
  std::string name;
  std::string says;
  std::string range;               // the n, d and M that the statement covers
  bool at_M = true, at_4M = true;  // whether the range includes M and 4 M
  Index says_words = 0, says_at_4M = 0;
  std::string about;  // the algorithm that moves the words
  Index words = 0, words_at_4M = 0;
  // Whether the statement is at least a fixed share of these words for every M in its range.
  bool has_constant = false;

  [[nodiscard]] StatementVerdict verdict() const;
  [[nodiscard]] bool refuted() const { return verdict() == StatementVerdict::refuted; }
};

struct BoundReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from;  // set if M is a share of a cache
  std::vector<Bound> bounds;
  std::optional<Choice> best;
  std::string no_best;                // the reason if no kernel is the best, else empty
  std::vector<Statement> statements;  // for backward tasks only
  std::vector<Partition> partitions;  // set by the caller, if requested
  std::vector<AsRow> as;              // for one level: other schedules, likewise
  // For several levels. `inner_from` has the cache behind each inner M. `level_bounds` has all
  // bounds of each level; the last element equals `bounds`. `weighted` is the weighted sum of the
  // active bounds. `word_costs_from` is the calibration with the costs of words, or empty.
  std::vector<FastMemoryOrigin> inner_from;
  std::vector<std::vector<Bound>> level_bounds;
  double weighted = 0;
  std::string word_costs_from;
  std::optional<Device> device;  // that gave M and the inner levels, if one did

  [[nodiscard]] const Bound& active() const;
  // Returns the words of the best kernel divided by the active bound. Requires: a best kernel.
  [[nodiscard]] double ratio() const;
  // Returns whether the best kernel moves fewer words than an asymptotic bound, inside the regime
  // of that bound.
  [[nodiscard]] bool undercut(const Bound& bound) const;
};

// The best kernel is one of redblue's, and no nest of the task. Throws: as lower_bounds().
BoundReport report_bounds(Task task);

// Returns the task on one line: "backward n=512 m=512 d=64 M=8192, given O and L". Leaves out the
// sizes named in `without`.
std::string to_words(const Task& task, std::string_view without = {});
// Returns a kernel, and the kernel that computes O and L for it: "backward/rows after
// forward/rows".
std::string to_words(const Choice& choice);
Description describe(const BoundReport& report);

}  // namespace redblue
