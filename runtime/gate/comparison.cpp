#include "runtime/gate/comparison.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/gate/metrics.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr double kMostPercent = 1e6;  // a larger tolerance would disable the gate
const std::string kTotal = "total";
// A number exactly at a limit passes, however the product that gives the limit is rounded.
constexpr double kRounded = 1 + 4 * std::numeric_limits<double>::epsilon();

template <class Number>
bool parse_all(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty();
}

Index distance(const Difference& difference) {
  return std::abs(difference.after - difference.before);
}

// Returns the sum of two numbers below 2^63 from a file, at most 2^63 - 1.
Index sum(Index a, Index b) {
  const Words both = Words(a) + b;
  return both.overflowed() ? std::numeric_limits<Index>::max() : both.value();
}

bool lets_pass(const Tolerance& tolerance, const Difference& difference) {
  const std::string& phase = difference.phase.empty() ? kTotal : difference.phase;
  if (difference.kind != Difference::Kind::words || tolerance.metric != difference.metric ||
      (!tolerance.phase.empty() && tolerance.phase != phase)) {
    return false;
  }
  if ((tolerance.side == Tolerance::Side::up && difference.after < difference.before) ||
      (tolerance.side == Tolerance::Side::down && difference.after > difference.before)) {
    return false;
  }
  if (!tolerance.percent) {
    return distance(difference) <= tolerance.words;
  }
  // A change by exactly this percentage passes.
  return 100 * static_cast<double>(distance(difference)) <=
         *tolerance.percent * static_cast<double>(difference.before) * kRounded;
}

void compare_counts(const PhaseCounts& before, const PhaseCounts& now, std::size_t level,
                    std::vector<Difference>& found) {
  for (const Metric& metric : kMetrics) {
    if (metric.of(before) != metric.of(now)) {
      found.push_back({.level = level,
                       .phase = now.path,
                       .metric = std::string(metric.name),
                       .before = metric.of(before),
                       .after = metric.of(now)});
    }
  }
}

std::vector<Difference> phase_differences(const std::vector<PhaseCounts>& before,
                                          const std::vector<PhaseCounts>& now, std::size_t level) {
  std::vector<Difference> found;
  for (const PhaseCounts& old : before) {
    const auto same = std::ranges::find(now, old.path, &PhaseCounts::path);
    if (same == now.end()) {
      found.push_back({.kind = Difference::Kind::phase_gone,
                       .level = level,
                       .phase = old.path,
                       .before = sum(old.io.reads, old.io.writes)});
    } else {
      compare_counts(old, *same, level, found);
    }
  }
  for (const PhaseCounts& fresh : now) {
    if (std::ranges::find(before, fresh.path, &PhaseCounts::path) == before.end()) {
      found.push_back({.kind = Difference::Kind::phase_new,
                       .level = level,
                       .phase = fresh.path,
                       .after = sum(fresh.io.reads, fresh.io.writes)});
    }
  }
  return found;
}

// Returns the counts of level 0, which is M itself, or of an inner level from 1, the innermost. If
// the level does not exist, the counts have no phases.
RunCounts::Level counts_at(std::size_t level, const RunCounts& counts) {
  if (level == 0) {
    return {counts.phases, counts.total};
  }
  return level <= counts.inner.size() ? counts.inner[level - 1] : RunCounts::Level();
}

// Hides a change of the total if the hidden changes of phases explain all of it.
void pass_total(const RunCounts& all_before, const RunCounts& all_now,
                std::vector<Difference>& found) {
  for (Difference& of_total : found) {
    const auto* metric = std::ranges::find(kMetrics, of_total.metric, &Metric::name);
    if (!of_total.phase.empty() || !of_total.hidden_by.empty() || metric == std::end(kMetrics)) {
      continue;
    }
    const RunCounts::Level before = counts_at(of_total.level, all_before);
    const RunCounts::Level now = counts_at(of_total.level, all_now);
    const auto hidden = [&](const PhaseCounts& phase) {
      return std::ranges::find_if(found, [&](const Difference& each) {
        return each.level == of_total.level && !each.phase.empty() && each.phase == phase.path &&
               each.metric == metric->name && !each.hidden_by.empty();
      });
    };
    // The total now, and the total with hidden phases as before.
    Index all = 0, without = 0;
    std::string by;
    for (const PhaseCounts& phase : now.phases) {
      const auto passed = hidden(phase);
      const auto add = [&](Index& to, Index words) {
        to = metric->adds_up ? sum(to, words) : std::max(to, words);
      };
      add(all, metric->of(phase));
      add(without, passed == found.end() ? metric->of(phase) : passed->before);
      if (passed != found.end() && by.find(passed->hidden_by) == std::string::npos) {
        by += (by.empty() ? "" : ",") + passed->hidden_by;
      }
    }
    if (all == metric->of(now.total) && without == metric->of(before.total)) {
      of_total.hidden_by = by;
    }
  }
}

// Returns the relative change of a point's words, the sort key of points. Infinite if one recording
// has no words, and -1 for equal points.
double change_of(const Compared& compared) {
  if (compared.differences.empty()) {
    return -1;
  }
  const auto io = [](const std::optional<RecordedPoint>& recorded) {
    return recorded && recorded->fits ? static_cast<double>(recorded->counts.total.io.reads) +
                                            static_cast<double>(recorded->counts.total.io.writes)
                                      : 0.0;
  };
  const double before = io(compared.before);
  const double now = io(compared.now);
  return before == 0 || now == 0 ? std::numeric_limits<double>::infinity()
                                 : std::abs(now - before) / before;
}

std::string signed_words(Index change) {
  return (change > 0 ? "+" : "") + grouped(change);
}

// Returns the violated budgets of both recordings, and the older recording's budgets that are gone
// or raised.
std::vector<Difference> of_budgets(const RecordedPoint& before, const RecordedPoint& now) {
  RecordedPoint held = now;
  add_budgets(before.at_most, held.at_most);
  if (!held.bound) {
    held.bound = before.bound;
  }
  std::vector<Difference> found = over_budget(held);
  for (const Budget& old : before.at_most) {
    const auto same = std::ranges::find(now.at_most, old.name(), &Budget::name);
    const auto add = [&](Difference::Kind kind, std::string why) {
      found.push_back(
          {.kind = kind, .phase = old.phase, .metric = old.metric, .why = std::move(why)});
    };
    if (same == now.at_most.end()) {
      add(Difference::Kind::budget_gone,
          fmt::format("{}: the budget is gone, at most {}", old.name(), old.most()));
    } else if (same->words > old.words || same->over_bound > old.over_bound) {
      add(Difference::Kind::budget_raised, fmt::format("{}: the budget is raised, at most {} -> {}",
                                                       old.name(), old.most(), same->most()));
    }
  }
  return found;
}

}  // namespace

Tolerance parse_tolerance(const std::string& text) {
  Tolerance tolerance{.text = text, .phase = {}, .metric = {}, .percent = std::nullopt};
  const std::size_t equals = text.rfind('=');
  if (equals != std::string::npos) {
    const std::size_t colon = text.rfind(':', equals);
    tolerance.phase = colon == std::string::npos ? "" : text.substr(0, colon);
    const std::size_t name = colon == std::string::npos ? 0 : colon + 1;
    tolerance.metric = text.substr(name, equals - name);
    std::string_view size = std::string_view(text).substr(equals + 1);
    if (size.starts_with('+') || size.starts_with('-')) {
      tolerance.side = size.starts_with('+') ? Tolerance::Side::up : Tolerance::Side::down;
      size.remove_prefix(1);
    }
    const bool known = colon != 0 && !size.starts_with('-') &&  // refuses a second sign
                       (tolerance.metric == kLeastM || find_metric(tolerance.metric) != nullptr);
    if (known && size.ends_with('%')) {
      double percent = 0;
      if (parse_all(size.substr(0, size.size() - 1), percent) && percent <= kMostPercent) {
        tolerance.percent = percent;
        return tolerance;
      }
    } else if (known && parse_all(size, tolerance.words)) {
      return tolerance;
    }
  }
  throw std::invalid_argument(fmt::format(
      "'{}': expected [PHASE:]METRIC=WORDS or [PHASE:]METRIC=SHARE%, METRIC reads, writes, "
      "index_reads, index_writes, peak or least_M, SHARE at most {:.0f}, a sign before it for one "
      "side, for example reads=1%, reads=+1% or phase1/S:peak=64",
      shortened(text), kMostPercent));
}

std::string to_share(Index before, Index after) {
  const double share = 100 * static_cast<double>(after - before) / static_cast<double>(before);
  const char* sign = share > 0 ? "+" : "-";
  if (std::abs(share) < 0.001) {
    return share == 0 ? "0%" : fmt::format("{}<0.001%", sign);
  }
  return std::abs(share) < 999.5  // three digits
             ? fmt::format("{:+.3g}%", share)
             : std::abs(share) < 1e15
                   ? fmt::format("{}{}%", sign, grouped(std::llround(std::abs(share))))
                   : fmt::format("{}>{}%", sign, grouped(1'000'000'000'000'000));
}

std::string place_of(const Difference& difference) {
  const std::string& phase = difference.phase.empty() ? kTotal : difference.phase;
  return difference.level == 0 ? phase : fmt::format("level {}, {}", difference.level, phase);
}

std::string to_words(const Difference& difference) {
  using Kind = Difference::Kind;
  const std::string phase = place_of(difference);
  switch (difference.kind) {
    case Kind::phase_gone:
      return fmt::format("{}: the phase is gone, and its {} words", phase,
                         grouped(difference.before));
    case Kind::phase_new:
      return fmt::format("{}: the phase is new, and its {} words", phase,
                         grouped(difference.after));
    case Kind::no_longer_fits:
      return "it no longer fits in M" + (difference.why.empty() ? "" : ": " + difference.why);
    case Kind::fits_now:
      return "it fits in M now";
    case Kind::least_M_unknown:
      return difference.after == 0 ? "its least M is no longer known" : "its least M is known now";
    case Kind::other_input:
    case Kind::over_budget:
    case Kind::budget_gone:
    case Kind::budget_raised:
    case Kind::gone:
    case Kind::failed:
      return difference.why;
    case Kind::added:
      return "it is new";
    case Kind::words:
      break;
  }
  const Index change = difference.after - difference.before;
  return fmt::format("{} {} {} -> {} words ({}{})", phase, difference.metric,
                     grouped(difference.before), grouped(difference.after), signed_words(change),
                     difference.before == 0 ? std::string()
                                            : ", " + to_share(difference.before, difference.after));
}

bool Compared::fails() const {
  return !accepted && std::ranges::any_of(differences, [](const Difference& difference) {
    return difference.hidden_by.empty();
  });
}

std::size_t GateComparison::failing() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, &Compared::fails));
}

std::size_t GateComparison::hidden() const {
  std::size_t hidden = 0;
  for (const Compared& compared : points) {
    if (compared.accepted) {
      continue;
    }
    hidden += static_cast<std::size_t>(std::ranges::count_if(
        compared.differences,
        [](const Difference& difference) { return !difference.hidden_by.empty(); }));
  }
  return hidden;
}

std::size_t GateComparison::accepted() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      points, [](const Compared& compared) { return compared.accepted.has_value(); }));
}

std::vector<Difference> over_budget(const RecordedPoint& recorded) {
  std::vector<Difference> over;
  const auto add = [&](const Budget& budget, Index most, Index words, std::string why) {
    over.push_back({.kind = Difference::Kind::over_budget,
                    .phase = budget.phase,
                    .metric = budget.metric,
                    .before = most,
                    .after = words,
                    .why = std::move(why)});
  };
  for (const Budget& budget : recorded.at_most) {
    if (!recorded.fits) {
      add(budget, budget.words, 0,
          fmt::format("it does not fit in M, and at_most has {}", budget.name()));
      continue;
    }
    if (budget.metric == kOverBound) {
      const Index words = *number_of(recorded, "", kWords);
      if (!recorded.bound) {
        add(budget, 0, 0, "its lower bound is not known, and at_most is over it");
      } else if (const double most = budget.over_bound * static_cast<double>(*recorded.bound);
                 static_cast<double>(words) > most * kRounded) {
        const Index whole = std::min(static_cast<Index>(std::min(most, 9e18)), words - 1);
        add(budget, whole, words,
            fmt::format("words {}, at most {}: {} times the lower bound {}", grouped(words),
                        grouped(whole), budget.most(), grouped(*recorded.bound)));
      }
      continue;
    }
    const std::optional<Index> number = number_of(recorded, budget.phase, budget.metric);
    if (!number) {
      add(budget, budget.words, 0,
          budget.metric == kLeastM
              ? "its least M is not known, and at_most is of it"
              : fmt::format("no phase is called {}, and at_most is of it", budget.phase));
    } else if (*number > budget.words) {
      add(budget, budget.words, *number,
          fmt::format("{}{} {}, at most {}", budget.phase.empty() ? "" : budget.phase + " ",
                      budget.metric == kLeastM ? "least M is" : budget.metric, grouped(*number),
                      grouped(budget.words)));
    }
  }
  return over;
}

std::string advice(const Difference& over) {
  return over.after > over.before
             ? ": let it move fewer, or raise at_most in the suite, and record it"
             : "";
}

std::vector<Difference> differences(const RecordedPoint& before, const RecordedPoint& now,
                                    const std::vector<Tolerance>& tolerances) {
  std::vector<Difference> found;
  if (before.least_M.has_value() != now.least_M.has_value()) {
    found.push_back({.kind = Difference::Kind::least_M_unknown,
                     .before = before.least_M.value_or(0),
                     .after = now.least_M.value_or(0)});
  } else if (before.least_M && *before.least_M != *now.least_M) {
    found.push_back(
        {.metric = std::string(kLeastM), .before = *before.least_M, .after = *now.least_M});
  }
  if (before.fits != now.fits) {
    found.insert(found.begin(),
                 {.kind = now.fits ? Difference::Kind::fits_now : Difference::Kind::no_longer_fits,
                  .why = now.why});
  } else if (before.fits) {
    const std::size_t inner = std::max(before.counts.inner.size(), now.counts.inner.size());
    std::vector<Difference> phases, totals;
    for (std::size_t level = 0; level <= inner; ++level) {
      const RunCounts::Level old = counts_at(level, before.counts);
      const RunCounts::Level fresh = counts_at(level, now.counts);
      const std::vector<Difference> at = phase_differences(old.phases, fresh.phases, level);
      phases.insert(phases.end(), at.begin(), at.end());
      compare_counts(old.total, fresh.total, level, totals);
    }
    std::ranges::stable_sort(phases, std::greater<>(), distance);
    phases.insert(phases.end(), totals.begin(), totals.end());
    found.insert(found.begin(), phases.begin(), phases.end());
  }
  for (const auto& [argument, fingerprint] : now.fingerprints) {
    const auto old = before.fingerprints.find(argument);
    if (old != before.fingerprints.end() && old->second != fingerprint) {
      found.insert(found.begin(),
                   {.kind = Difference::Kind::other_input,
                    .metric = argument,
                    .why = fmt::format("{} is another: its file has changed (fingerprint {} -> {})",
                                       argument, old->second, fingerprint)});
    }
  }
  for (Difference& difference : found) {
    const auto tolerance = std::ranges::find_if(
        tolerances, [&](const Tolerance& each) { return lets_pass(each, difference); });
    if (tolerance != tolerances.end()) {
      difference.hidden_by = tolerance->text;
    }
  }
  pass_total(before.counts, now.counts, found);
  std::stable_partition(found.begin(), found.end(),
                        [](const Difference& difference) { return difference.hidden_by.empty(); });
  return found;
}

std::vector<std::string> idle(const std::vector<Tolerance>& tolerances,
                              const GateComparison& comparison) {
  std::vector<std::string> texts;
  for (const Tolerance& tolerance : tolerances) {
    const auto has = [&](const std::optional<RecordedPoint>& recorded) {
      return recorded &&
             std::ranges::any_of(recorded->counts.phases, [&](const PhaseCounts& phase) {
               return phase.path == tolerance.phase;
             });
    };
    if (!tolerance.phase.empty() && tolerance.phase != kTotal &&
        std::ranges::none_of(comparison.points, [&](const Compared& compared) {
          return has(compared.before) || has(compared.now);
        })) {
      texts.push_back(tolerance.text);
    }
  }
  return texts;
}

void sort_by_change(GateComparison& comparison) {
  std::ranges::stable_sort(comparison.points, std::greater<>(), [](const Compared& compared) {
    return std::pair(compared.fails(), change_of(compared));
  });
}

GateComparison compare(const Recording& before, const Recording& now,
                       const std::vector<Tolerance>& tolerances) {
  if (before.how != now.how) {
    throw InputError(
        fmt::format("one recording is of what kernels {}, the other of what they {}: "
                    "record both alike",
                    to_string(before.how), to_string(now.how)));
  }
  GateComparison comparison{.how = now.how};
  const auto index = [](const Recording& recording) {
    std::map<PointKey, const RecordedPoint*> points;
    for (const RecordedPoint& recorded : recording.points) {
      points.emplace(key_of(recorded.point), &recorded);
    }
    return points;
  };
  const auto points_before = index(before);
  const auto points_now = index(now);
  for (const RecordedPoint& old : before.points) {
    Compared compared{.point = old.point, .before = old};
    const auto same = points_now.find(key_of(old.point));
    if (same == points_now.end()) {
      compared.differences = {{.kind = Difference::Kind::gone, .why = "it is gone"}};
    } else {
      compared.now = *same->second;
      compared.differences = of_budgets(old, *same->second);
      const std::vector<Difference> counted = differences(old, *same->second, tolerances);
      compared.differences.insert(compared.differences.end(), counted.begin(), counted.end());
    }
    comparison.points.push_back(std::move(compared));
  }
  for (const RecordedPoint& fresh : now.points) {
    if (!points_before.contains(key_of(fresh.point))) {
      comparison.points.push_back(
          {.point = fresh.point, .now = fresh, .differences = {{.kind = Difference::Kind::added}}});
    }
  }
  sort_by_change(comparison);
  return comparison;
}

}  // namespace redblue
