#pragma once
// What `redblue bounds` has to say: the bounds of a task, which one is active, the kernel that
// moves the fewest words, and where statements of the paper stand at this size.

#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// An O(...) of the paper that falls with M, without its constant and rounded down, and what it is
// about, at M and at 4 M.
struct Statement {
  std::string name;
  std::string says;
  Index says_words = 0, says_at_4M = 0;
  std::string about;  // whose words
  Index words = 0, words_at_4M = 0;

  // What the paper says falls with M, even where it is less than a word here; what it is about does
  // not: no constant will do.
  [[nodiscard]] bool refuted() const { return words_at_4M >= words; }
};

struct BoundReport {
  Task task;
  std::optional<FastMemoryOrigin> M_from;  // where M is a part of a cache
  std::vector<Bound> bounds;
  std::optional<Choice> best;
  std::string no_best;                // why there is none; else empty
  std::vector<Statement> statements;  // of backward

  [[nodiscard]] const Bound& active() const;
  // The words of the best over those of the active bound. Requires: there is a best.
  [[nodiscard]] double ratio() const;
  // An asymptotic bound within its regime that a kernel undercuts.
  [[nodiscard]] bool undercut(const Bound& bound) const;
};

// Throws: what lower_bounds() does.
BoundReport report_bounds(const Task& task);

// "backward n=512 m=512 d=64 M=8192, given O and L": on one line.
std::string to_words(const Task& task);
// A kernel, and the one that makes O and L for it.
std::string to_words(const Choice& choice);
std::string to_table(const BoundReport& report);
std::string to_json(const BoundReport& report);
std::string to_csv(const BoundReport& report);

}  // namespace redblue
