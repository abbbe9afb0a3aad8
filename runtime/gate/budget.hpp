#pragma once
// Limits that a person sets, and no baseline moves.

#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// The most that a metric may be, of a phase or of the point, whatever was recorded before.
struct Budget {
  std::string phase = {};  // empty: the point
  std::string metric = {};
  Index words = 0;
  double over_bound = 0;  // of the metric over_bound, in place of words

  // "phase1/S:reads".
  [[nodiscard]] std::string name() const;
  // "40,960", or of over_bound the factor.
  [[nodiscard]] std::string most() const;
  friend bool operator==(const Budget&, const Budget&) = default;
};
// The budget of this name, of reads, writes, words (both), index_reads, index_writes, peak or
// least_M; or over_bound, the point's words over the lower bound. Throws: std::invalid_argument.
Budget parse_budget(const std::string& name, double most);
// "words=40,960 over_bound=3".
std::string to_string(const std::vector<Budget>& budgets);
// Adds these budgets: of two of one name the smaller holds.
void add_budgets(const std::vector<Budget>& more, std::vector<Budget>& budgets);

}  // namespace redblue
