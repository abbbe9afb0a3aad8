#pragma once
// Budgets: limits that a person sets. Recording a new baseline does not change them.

#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// The largest value that a metric may have, for a phase or for the whole point. It does not depend
// on earlier recordings.
struct Budget {
  std::string phase = {};  // empty: the whole point
  std::string metric = {};
  Index words = 0;
  double over_bound = 0;  // the limit if the metric is over_bound; `words` is unused then

  // "phase1/S:reads".
  [[nodiscard]] std::string name() const;
  // "40,960"; for over_bound the factor.
  [[nodiscard]] std::string most() const;
  friend bool operator==(const Budget&, const Budget&) = default;
};
// Parses the name of a budget, [PHASE:]METRIC, with the limit `most`. METRIC is reads, writes,
// index_reads, index_writes, words (reads plus writes), peak or least_M. METRIC over_bound is the
// point's words over the lower bound. Throws: std::invalid_argument.
Budget parse_budget(const std::string& name, double most);
// "words=40,960 over_bound=3".
std::string to_string(const std::vector<Budget>& budgets);
// Adds budgets. If two have the same name, the smaller one is kept.
void add_budgets(const std::vector<Budget>& more, std::vector<Budget>& budgets);

}  // namespace redblue
