#include "runtime/gate/budget.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/gate/metrics.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr double kMostOverBound = 1e6;  // a larger factor limits nothing useful
// 2^53: a double holds all whole numbers up to here
constexpr double kMostWords = 9007199254740992;

}  // namespace

std::string Budget::name() const {
  return phase.empty() ? metric : phase + ":" + metric;
}

std::string Budget::most() const {
  return metric == kOverBound ? fmt::format("{}", over_bound) : grouped(words);
}

std::string to_string(const std::vector<Budget>& budgets) {
  std::string text;
  for (const Budget& budget : budgets) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", budget.name(), budget.most());
  }
  return text;
}

void add_budgets(const std::vector<Budget>& more, std::vector<Budget>& budgets) {
  for (const Budget& budget : more) {
    const auto same = std::ranges::find(budgets, budget.name(), &Budget::name);
    if (same == budgets.end()) {
      budgets.push_back(budget);
    } else {
      same->words = std::min(same->words, budget.words);
      same->over_bound = std::min(same->over_bound, budget.over_bound);
    }
  }
}

Budget parse_budget(const std::string& name, double most) {
  const std::size_t colon = name.rfind(':');
  Budget budget{.phase = colon == std::string::npos ? "" : name.substr(0, colon),
                .metric = colon == std::string::npos ? name : name.substr(colon + 1)};
  const bool of_points = budget.metric == kLeastM || budget.metric == kOverBound;
  if (colon == 0 || (of_points && !budget.phase.empty()) ||
      (!of_points && budget.metric != kWords && find_metric(budget.metric) == nullptr)) {
    throw std::invalid_argument(fmt::format(
        "'{}': expected [PHASE:]METRIC, METRIC words, reads, writes, index_reads, index_writes or "
        "peak; or least_M or over_bound",
        shortened(name)));
  }
  if (budget.metric == kOverBound) {
    if (!(most >= 1 && most <= kMostOverBound)) {
      throw std::invalid_argument(
          fmt::format("{} is {:.6g}: expected 1 to {:.6g}: no algorithm is below its lower bound",
                      name, most, kMostOverBound));
    }
    budget.over_bound = most;
    return budget;
  }
  if (!(most >= 0 && most <= kMostWords) || most != std::floor(most)) {
    throw std::invalid_argument(fmt::format(
        "{} is {:.6g}: expected a number of words, at most 2^53", shortened(name), most));
  }
  budget.words = static_cast<Index>(most);
  return budget;
}

}  // namespace redblue
