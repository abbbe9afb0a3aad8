#pragma once
// The report of `redblue bounds`: the bounds of a task, the active one among them, the kernel that
// moves the fewest words, and what the paper's statements mean at this size.

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

// What the words at M and at 4 M say of a statement O(...) that falls with M.
enum class StatementVerdict {
  falls,            // the words fall, too
  within_constant,  // they do not, but the statement stays above a fixed share of them in its range
  refuted,          // they do not, and the statement falls below every share of them
  M_outside,        // the paper states nothing of this M, or of m other than n
  next_M_outside    // it states nothing of 4 M
};

// A statement O(...) of the paper, and the words that it is about, both at M and at 4 M. The
// statement is evaluated without its constant and rounded down.
struct Statement {
  std::string name;
  std::string says;
  std::string range;               // the n, d and M that the paper states it for
  bool at_M = true, at_4M = true;  // whether these M are in that range
  Index says_words = 0, says_at_4M = 0;
  std::string about;  // the algorithm that moves the words
  Index words = 0, words_at_4M = 0;
  // Whether the statement is at least a fixed share of these words at every M of its range.
  bool has_constant = false;

  [[nodiscard]] StatementVerdict verdict() const;
  [[nodiscard]] bool refuted() const { return verdict() == StatementVerdict::refuted; }
};

struct BoundReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from;  // set if M is a share of a cache
  std::vector<Bound> bounds;
  std::optional<Choice> best;
  std::string no_best;                // the reason for no best kernel, else empty
  std::vector<Statement> statements;  // of backward tasks only
  std::vector<Partition> partitions;  // where they are asked for
  std::vector<AsRow> as;              // of one level: tiles of others, likewise
  // Of several levels: the caches that inner ones are parts of; all bounds of each level, of which
  // those of the last are `bounds`; the weighted sum of the active ones; and the calibration that
  // says what a word costs, if one does.
  std::vector<FastMemoryOrigin> inner_from;
  std::vector<std::vector<Bound>> level_bounds;
  double weighted = 0;
  std::string word_costs_from;
  std::optional<Device> device;  // of which M and inner levels are

  [[nodiscard]] const Bound& active() const;
  // The words of the best kernel over those of the active bound. Requires: a best kernel.
  [[nodiscard]] double ratio() const;
  // Whether the best kernel moves fewer words than an asymptotic bound says in its regime.
  [[nodiscard]] bool undercut(const Bound& bound) const;
};

// Throws: as lower_bounds().
BoundReport report_bounds(const Task& task);

// "backward n=512 m=512 d=64 M=8192, given O and L", on one line.
std::string to_words(const Task& task, std::string_view without = {});
// A kernel, and the kernel that makes O and L for it: "backward/rows after forward/rows".
std::string to_words(const Choice& choice);
Description describe(const BoundReport& report);

}  // namespace redblue
