#include "kernels/parts/level_costs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/parts/descent.hpp"
#include "kernels/parts/live_pairs.hpp"

namespace redblue {

Index PlanLevel::least(Index most, Index outermost, Index LevelBlocks::*block) const {
  Index size = std::min(most, outermost);
  for (std::size_t k = level; k < by.inner.size(); ++k) {
    size = std::min(size, by.inner[k].*block);
  }
  return size;
}

// Level by.inner.size() is the machine.
Index PlanLevel::blocks(std::size_t of_level, Index length, Index outermost,
                        Index LevelBlocks::*block) const {
  std::vector<Index> steps;
  for (std::size_t k = of_level; k < by.inner.size(); ++k) {
    steps.push_back(by.inner[k].*block);
  }
  steps.push_back(outermost);
  return pieces(length, steps.front(), std::span(steps).subspan(1));
}

namespace {

// The sum over row blocks of `of.largest` rows. The last block may have fewer rows.
template <class OfBlock>
Words over_units(const Units::Sum& of, const OfBlock& of_block) {
  if (of.units == 0) {
    return 0;
  }
  const Index last = of.rows - (of.units - 1) * of.largest;
  return Words(of.units - 1) * of_block(of.largest) + of_block(last);
}

}  // namespace

Words PlanLevel::row_blocks(const Units::Sum& of) const {
  return over_units(of,
                    [&](Index rows) { return blocks(level, rows, by.rows, &LevelBlocks::rows); });
}
Words PlanLevel::more_row_blocks_around(const Units::Sum& of) const {
  return over_units(
      of, [&](Index rows) { return blocks(level + 1, rows, by.rows, &LevelBlocks::rows) - 1; });
}
Index PlanLevel::key_blocks_around(Index keys) const {
  return blocks(level + 1, keys, by.keys, &LevelBlocks::keys);
}
Index PlanLevel::key_blocks(Index keys) const {
  return blocks(level, keys, by.keys, &LevelBlocks::keys);
}
Index PlanLevel::weight_blocks_around(Index columns) const {
  return blocks(level + 1, columns, by.weights, &LevelBlocks::weights);
}
Index PlanLevel::weight_blocks(Index columns) const {
  return blocks(level, columns, by.weights, &LevelBlocks::weights);
}

PhaseCost level_rows_times_cost(std::string path, PlanLevel in, const Units::Sum& of) {
  const Index d = in.by.problem.shape.d;
  const Words rows = of.rows;
  const Words r = in.rows(of.largest), w = in.weights(d);
  return {.path = std::move(path),
          .reads = rows * d * in.weight_blocks_around(d) + Words(d) * d * in.row_blocks(of),
          .writes = rows * d,
          .peak = of.units == 0 ? Words(0) : r * d + d * w + w * r,
          .flops = 0};
}

PhaseCost level_row_dots_cost(std::string path, PlanLevel in, const Units::Sum& of) {
  const Words dv = in.by.problem.shape.dv, rows = of.rows, r = in.rows(of.largest);
  return {.path = std::move(path),
          .reads = 2 * dv * rows,
          .writes = rows,
          .peak = 2 * (in.level == 0 ? kByPanels : AtATime()).of(dv, r) + r,
          .flops = 0};
}

namespace {

// The rows, counted each time they come (`rows`), and each time but the first (`again`). The keys
// that all row blocks meet, and the most words held.
struct LevelPasses {
  Words rows, again, keys, peak;
};
// Returns the most words held for some rows and keys.
using WordsNear = std::function<Words(Index rows, Index keys)>;

class MaskedPasses {
 public:
  MaskedPasses(PlanLevel in, bool apart, const WordsNear& words)
      : in_(in),
        apart_(apart),
        words_(words),
        begun_(static_cast<std::size_t>(in.by.problem.shape.n)) {}

  LevelPasses of(Range units) {
    const Units all = in_.by.units();
    for (Index unit = units.begin; unit < units.end; ++unit) {
      for (const Range J : Pieces(in_.by.problem.keys(all[unit]), in_.by.keys)) {
        walk(in_.by.inner.size(), all[unit], J);
      }
    }
    return sum_;
  }

 private:
  void walk(std::size_t levels, Range I, Range J) {
    const LevelBlocks& by = in_.by.inner[levels - 1];
    for (const Range part : blocks(I.size(), by.rows)) {
      const Range rows = part_of(I, part);
      const Range keys = keys_near(in_.by.problem, rows, J);
      if (keys.size() <= 0) {
        continue;
      }
      if (levels - 1 == in_.level && !apart_) {
        add(rows, keys.size(), std::min(keys.size(), by.keys));
        continue;
      }
      for (const Range piece : blocks(keys.size(), by.keys)) {
        const Range near = part_of(keys, piece);
        if (levels - 1 > in_.level) {
          walk(levels - 1, rows, near);
        } else if (const Index met = keys_near(in_.by.problem, rows, near).size(); met > 0) {
          add(rows, met, met);
        }
      }
    }
  }
  void add(Range rows, Index keys, Index together) {
    sum_.rows += rows.size();
    sum_.keys += keys;
    auto begun = begun_[static_cast<std::size_t>(rows.begin)];
    sum_.again += begun ? rows.size() : 0;
    begun = true;
    sum_.peak = std::max(sum_.peak, words_(rows.size(), together));
  }

  PlanLevel in_;
  bool apart_;
  const WordsNear& words_;
  std::vector<bool> begun_;
  LevelPasses sum_;
};

LevelPasses passes_of(PlanLevel in, Range units, bool apart, const WordsNear& words) {
  const Problem& problem = in.by.problem;
  if (!problem.mask.full()) {
    return MaskedPasses(in, apart, words).of(units);
  }
  const Units::Sum of = in.by.units().sum(units);
  const Index times =
      apart ? in.key_blocks(problem.shape.m) : in.key_blocks_around(problem.shape.m);
  return {.rows = Words(of.rows) * times,
          .again = Words(of.rows) * (times - 1),
          .keys = in.row_blocks(of) * problem.shape.m,
          .peak = of.units == 0 ? Words(0) : words(in.rows(of.largest), in.keys(problem.shape.m))};
}

}  // namespace

// Steps that are not apart count as one step: rows stay while keys stream.
PhaseCost level_core_cost(std::string path, PlanLevel in, Range units, const LevelSums& sums) {
  const bool apart = in.level == 0 && in.by.steps_apart();
  const std::vector<LevelSums::Step> steps =
      apart ? sums.steps
            : std::vector<LevelSums::Step>{
                  {.read = sums.read, .summed = sums.summed, .passing = sums.passing}};
  const LevelPasses passes = passes_of(in, units, apart, [&](Index rows, Index keys) {
    Words most;
    for (const LevelSums::Step& step : steps) {
      most = std::max(most, step.words(rows, keys));
    }
    return most + sums.strips;
  });
  PhaseCost cost{.path = std::move(path), .reads = 0, .writes = 0, .peak = passes.peak, .flops = 0};
  for (const LevelSums::Step& step : steps) {
    cost.reads += passes.rows * (step.read + step.changed) + passes.again * step.summed +
                  passes.keys * (step.passing + step.beside);
    cost.writes += passes.rows * (step.changed + step.summed);
  }
  return cost;
}

PhaseCost level_gradient_cost(PlanLevel in, const Units::Sum& of, Index adding) {
  const RowPlan& by = in.by;
  const Index d = by.problem.shape.d, columns = in.weight_blocks(d);
  const Words dd = Words(d) * d, rows = of.rows;
  const Words r = in.rows(of.largest), w = in.weights(d);
  const Words again = in.more_row_blocks_around(of);
  const Words passing = w * d + r * (d + w);
  return {.path = "g",
          .reads = rows * d * (columns + 1) + dd * again + 2 * dd * adding,
          .writes = dd * (again + of.units) + dd * adding,
          .peak = adding > 0 ? std::max(passing, 2 * w * d) : passing,
          .flops = 0};
}

PhaseCost level_add_rows_cost(std::string path, PlanLevel in, Index rows, Words times) {
  const Words words = Words(rows) * in.by.problem.shape.d;
  return {
      .path = std::move(path),
      .reads = 2 * words * times,
      .writes = words * times,
      .peak = times == Words(0) ? Words(0) : 2 * Words(in.weights(rows)) * in.by.problem.shape.d,
      .flops = 0};
}

// ---- blocks ------------------------------------------------------------------------------------

namespace {

// Chooses the blocks of all levels, from the innermost out; the machine is the last. A block may be
// larger than the extent it cuts, which is then one piece.
class LevelFit {
 public:
  LevelFit(const Problem& problem, const Memory& memory, const CostOfBlocks& cost,
           const LevelCostOfBlocks& level_cost)
      : problem_(problem), memory_(memory), cost_(cost), level_cost_(level_cost) {}

  // Chooses the blocks with these keys for each level around the innermost. Returns their cost.
  [[nodiscard]] double fit(const std::vector<Index>& keys, Objective objective) {
    const auto [n, m, d] = problem_.shape;
    const std::size_t count = memory_.inner.size();
    plan_ = RowPlan(problem_, n, m, d);
    plan_.inner.assign(count, {.rows = n, .keys = m, .weights = d});
    for (std::size_t level = 0; level <= count; ++level) {
      // Blocks of an inner level are multiples of blocks of the level inside, so that cuts
      // coincide. For time, so are the rows of the machine, if they fit, because a part of a block
      // takes longer.
      const bool outermost = level == count, for_time = objective == Objective::time;
      LevelBlocks inside = level == 0 || outermost ? LevelBlocks{1, 1, 1} : at(level - 1);
      if (outermost && for_time) {
        set(level, {.rows = at(level - 1).rows, .keys = 1, .weights = 1});
        inside.rows = fits(level) ? at(level - 1).rows : 1;
      }
      set(level, {.rows = inside.rows, .keys = 1, .weights = inside.weights});
      const auto raise = [&](Index LevelBlocks::*block, Index most) {
        const Index step = at(level).*block;
        LevelBlocks best = at(level);
        best.*block = step * largest(ceil_div(most, step), [&](Index tried) {
                        LevelBlocks with = best;
                        with.*block = tried * step;
                        set(level, with);
                        return fits(level);
                      });
        set(level, best);
      };
      if (level > 0) {
        raise(&LevelBlocks::keys, std::min(keys[level - 1], m));
        if (LevelBlocks by = at(level); for_time && by.keys > at(level - 1).keys) {
          by.keys -= by.keys % at(level - 1).keys;  // a short last block takes longer
          set(level, by);
        }
      } else if (for_time) {
        if (!inside_) {
          inside_ = fastest_inside();
        }
        set(level, *inside_);
      }
      if (level > 0 || !for_time) {
        raise(&LevelBlocks::rows, n);
      }
      if (outermost) {
        const Index rows = even(n, std::min(plan_.rows, n));
        plan_.rows = std::min(plan_.rows, ceil_div(rows, inside.rows) * inside.rows);
      }
      if (level == 0 && !for_time) {
        raise(&LevelBlocks::keys, m);
      }
      raise(&LevelBlocks::weights, d);
      if (level == 0 && for_time) {
        plan_.inner.front().weights = whole_panels(plan_.inner.front().weights);
      }
    }
    return words();
  }

  [[nodiscard]] Blocks blocks() const { return plan_.blocks(); }

 private:
  [[nodiscard]] LevelBlocks at(std::size_t level) const {
    return level < plan_.inner.size() ? plan_.inner[level]
                                      : LevelBlocks{plan_.rows, plan_.keys, plan_.weights};
  }
  void set(std::size_t level, LevelBlocks by) {
    if (level < plan_.inner.size()) {
      plan_.inner[level] = by;
    } else {
      plan_.rows = by.rows;
      plan_.keys = by.keys;
      plan_.weights = by.weights;
    }
  }
  [[nodiscard]] PhaseCost cost(std::size_t level) const {
    return total(level < plan_.inner.size() ? level_cost_(problem_, plan_.blocks(), level)
                                            : cost_(problem_, plan_.blocks()));
  }
  // Whether the blocks of a level fit. The levels around it have no blocks yet, so they are taken
  // as large as possible, with one row block and with two.
  [[nodiscard]] bool fits(std::size_t level) {
    const RowPlan so_far = plan_;
    const auto [n, m, d] = problem_.shape;
    bool fits = true;
    for (const Index rows : {n, std::max<Index>(n - 1, 1)}) {
      for (std::size_t around = level + 1; around <= memory_.inner.size(); ++around) {
        set(around, {around < memory_.inner.size() ? n : rows, m, d});
      }
      fits = fits && cost(level).peak <= Words(memory_.words(level));
    }
    plan_ = so_far;
    return fits;
  }
  // Strips keep the registers busy if rows are whole panels and there are several keys. With steps
  // apart, strips are larger, and each takes longer to reach.
  [[nodiscard]] LevelBlocks fastest_inside() {
    LevelBlocks best{1, 1, 1};
    double least = std::numeric_limits<double>::infinity();
    for (const bool apart : {false, true}) {
      for (Index c = std::min<Index>(problem_.shape.m, kMostKeys); c >= 1; c = fewer_keys(c)) {
        const auto with = [&](Index r) {
          set(0, {r, c, 1, apart});
          return fits(0) && (!apart || have_room_for(r));
        };
        if (!with(1)) {
          continue;
        }
        Index r = largest(problem_.shape.n, with);
        r = r > 3 * kPanel ? r / (3 * kPanel) * (3 * kPanel) : whole_panels(r);
        if (const double slow = slowness({r, c, 1, apart}); slow < least) {
          least = slow;
          best = {r, c, 1, apart};
        }
      }
    }
    return best;
  }
  // Whether the levels around the innermost have room for these rows. These levels borrow the tiles
  // of all steps together.
  [[nodiscard]] bool have_room_for(Index rows) {
    const RowPlan so_far = plan_;
    bool fit = true;
    for (std::size_t level = 1; level <= memory_.inner.size(); ++level) {
      set(level, {rows, 1, 1});
      fit = fit && fits(level);
    }
    plan_ = so_far;
    return fit;
  }
  // The numbers of keys tried are multiples of 12, alone and with 4 more: register tiles of 1, 2, 4
  // or 6 keys divide 12. From 12 down they halve.
  static constexpr Index kMostKeys = 96;
  static Index whole_panels(Index size) { return size > kPanel ? size / kPanel * kPanel : size; }
  static Index fewer_keys(Index c) {
    return c > 12 ? (c % 12 == 4 ? c - 4 : (c - 1) / 12 * 12 + (c % 12 == 0 ? 4 : 0)) : c / 2;
  }
  // The time for a pair and a column, in multiply-adds. There are three multiply-adds, and the last
  // loads and stores its sums once for c keys. Vectors run along whole panels of queries. Each
  // strip takes a fixed time. The factors were measured.
  [[nodiscard]] double slowness(const LevelBlocks& by) const {
    const auto [n, m, d] = problem_.shape;
    const Index r = std::min(by.rows, n);
    const auto queries = static_cast<double>(by.apart ? r : std::min<Index>(r, 3 * kPanel));
    const auto keys = static_cast<double>(by.keys);
    const double lanes = static_cast<double>(ceil_div(r, kPanel) * kPanel) / static_cast<double>(r);
    const double whole = r % (3 * kPanel) == 0 ? 1 : 1.02;
    const double strip = by.apart ? 13300 : 7500;
    return (3 + 2.7 / keys) * lanes * whole + strip / (queries * keys * static_cast<double>(d));
  }
  [[nodiscard]] double words() const {
    return weighted_words(memory_, [&](std::size_t level) { return cost(level); });
  }

  const Problem& problem_;
  const Memory& memory_;
  const CostOfBlocks& cost_;
  const LevelCostOfBlocks& level_cost_;
  RowPlan plan_{problem_, 1, 1, 1};
  std::optional<LevelBlocks> inside_;
};

}  // namespace

// Words are few at two neighbouring levels, of M and of more words M', if the second has sqrt(M M'
// / 3) / d keys. The search starts there. It changes the keys of one level after another while the
// cost falls, in steps that shrink.
Blocks fit_levels(const Problem& problem, const Memory& memory, Objective objective,
                  const CostOfBlocks& cost, const LevelCostOfBlocks& level_cost) {
  // Blocks that fit without a mask also fit under one, if the words of its index are set aside.
  const Problem all = problem.with_mask({});
  Memory left = memory;
  left.M = std::max<Index>(memory.M - problem.mask.index().live(), 1);
  left.word_costs = {};
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    left.word_costs.push_back(memory.word_cost(level));
  }
  LevelFit fit(all, left, cost, level_cost);
  std::vector<Index> keys;
  for (std::size_t level = 1; level <= left.inner.size(); ++level) {
    const double wanted = std::sqrt(static_cast<double>(left.words(level - 1)) *
                                    static_cast<double>(left.words(level)) / 3) /
                          static_cast<double>(problem.shape.d);
    keys.push_back(std::clamp<Index>(static_cast<Index>(wanted), 1, problem.shape.m));
  }
  descend(keys, 0, problem.shape.m,
          [&](const std::vector<Index>& tried) { return fit.fit(tried, objective); });
  static_cast<void>(fit.fit(keys, objective));
  return fit.blocks();
}

}  // namespace redblue
