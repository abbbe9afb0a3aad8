// Kernels with keys, and queries, in groups, run in parts. Each part has some row blocks and some
// groups, or only some rows, and numbers them itself. Together the parts return the bits of the
// whole. Each part moves the words of its formula, within the fast memory of its formula.

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/masked.hpp"
#include "memsim/host_access.hpp"
#include "tests/support/print.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

using Numbers = std::vector<Index>;

// Deals things out one by one. The things of a part need not be consecutive.
std::vector<Numbers> dealt_out(Index things, Index parts) {
  std::vector<Numbers> shares(static_cast<std::size_t>(parts));
  for (Index thing = 0; thing < things; ++thing) {
    shares[static_cast<std::size_t>(thing % parts)].push_back(thing);
  }
  return shares;
}

Ranges joined(const Ranges& ranges) {
  Ranges all;
  for (const Range range : ranges) {
    if (!all.empty() && all.back().end == range.begin) {
      all.back().end = range.end;
    } else if (range.size() > 0) {
      all.push_back(range);
    }
  }
  return all;
}

// Returns the rows with these numbers among `rows`.
Ranges picked(const Ranges& rows, Range numbers) {
  Ranges found;
  Index first = 0;
  for (const Range range : rows) {
    const Range own{std::max(numbers.begin - first, Index{0}),
                    std::min(numbers.end - first, range.size())};
    if (own.size() > 0) {
      found.push_back({range.begin + own.begin, range.begin + own.end});
    }
    first += range.size();
  }
  return found;
}

Range share(Index rows, Index which, Index parts) {
  return {rows * which / parts, rows * (which + 1) / parts};
}

class InParts {
 public:
  InParts(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem, Index rows,
          Index columns)
      : kernel_(kernel.kernel->of_live ? *kernel.kernel->of_live : *kernel.kernel),
        plan_(live_plan(plan)),
        rows_(rows),
        columns_(columns) {
    const Shape& shape = plan.problem.shape;
    for (const Signature& operand : kernel_.given(plan.problem)) {
      put(operand, operand.rows_of(shape), problem.given.at(std::string(operand.name)));
    }
    for (const Signature& result : kernel_.returned(plan.problem)) {
      put(result, result.rows_of(shape), {});
    }
    for (const Split::Copies& left : split().left_of(plan.problem, plan.blocks)) {
      put(left.matrix, left.copies * left.matrix.rows_of(shape), {});
    }
    if (split().add_partials) {
      put(kPartials, units() * shape.d, {});
    }
    deal();
  }

  void run() {
    for (const SplitStage& stage : split().stages) {
      for (Index row = 0; row < rows_; ++row) {
        for (Index column = 0; column < columns_; ++column) {
          run_part(stage, row, column);
        }
      }
    }
    if (split().add_partials) {
      Machine machine(plan_.M);
      split().add_partials(machine, plan_, {0, units()}, false, all_.at(std::string("partial g")),
                           all_.at("g"));
    }
  }

  [[nodiscard]] Buffers results() const {
    Buffers found;
    for (const Signature& result : kernel_.returned(plan_.problem)) {
      const SlowMatrix& matrix = all_.at(std::string(result.name));
      Buffer& words = found[std::string(result.name)];
      words.resize(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
      HostAccess::get(matrix, words);
    }
    return found;
  }

  // Runs the whole plan on one machine.
  [[nodiscard]] Buffers whole(const TestProblem& problem) const {
    InParts one(*this, problem);
    RamWorkspace workspace;
    Operands io;
    for (const Signature& operand : kernel_.given(plan_.problem)) {
      io.give(one.all_.at(std::string(operand.name)));
    }
    for (const Signature& result : kernel_.returned(plan_.problem)) {
      io.take(one.all_.at(std::string(result.name)));
    }
    Machine machine(plan_.M);
    kernel_.run(machine, plan_, io, workspace);
    return one.results();
  }

 private:
  static constexpr Signature kPartials{"partial g", &Shape::d, &Shape::d, Holds::sums};

  InParts(const InParts& other, const TestProblem& problem)
      : kernel_(other.kernel_), plan_(other.plan_), rows_(1), columns_(1) {
    const Shape& shape = plan_.problem.shape;
    for (const Signature& operand : kernel_.given(plan_.problem)) {
      put(operand, operand.rows_of(shape), problem.given.at(std::string(operand.name)));
    }
    for (const Signature& result : kernel_.returned(plan_.problem)) {
      put(result, result.rows_of(shape), {});
    }
  }

  [[nodiscard]] const Split& split() const { return *kernel_.schedule.split; }
  [[nodiscard]] Index row_block() const {
    return plan_.blocks[plan_.blocks.contains("dQ.Br") ? "dQ.Br" : "Br"];
  }
  [[nodiscard]] Index row_blocks() const { return ceil_div(plan_.problem.shape.n, row_block()); }
  [[nodiscard]] Index key_groups() const {
    return std::min(key_groups_of(plan_.blocks), plan_.problem.shape.m);
  }
  [[nodiscard]] Index query_groups() const {
    return plan_.blocks.contains(kQueryGroups) ? std::min(plan_.blocks[kQueryGroups], row_blocks())
                                               : 0;
  }
  [[nodiscard]] Index units() const { return row_blocks() * key_groups(); }

  void put(const Signature& matrix, Index rows, const Buffer& words) {
    SlowMatrix& added =
        all_.try_emplace(std::string(matrix.name), std::string(matrix.name),
                         std::max<Index>(rows, 1), matrix.cols_of(plan_.problem.shape))
            .first->second;
    if (!words.empty()) {
      HostAccess::put(added, words);
    }
  }

  void deal() {
    const Shape& shape = plan_.problem.shape;
    const BlockRanges blocks(shape.n, row_block());
    groups_of_row_ = dealt_out(query_groups() > 0 ? query_groups() : row_blocks(), rows_);
    for (const Numbers& things : groups_of_row_) {
      Numbers& its = blocks_of_row_.emplace_back();
      Ranges& queries = queries_of_row_.emplace_back();
      for (const Index thing : things) {
        const Range of = query_groups() > 0 ? keys_of_group(row_blocks(), query_groups(), thing)
                                            : Range{thing, thing + 1};
        for (Index block = of.begin; block < of.end; ++block) {
          its.push_back(block);
          queries.push_back(blocks[block]);
        }
      }
      queries = joined(queries);
    }
    groups_of_column_ = dealt_out(key_groups(), columns_);
    for (const Numbers& groups : groups_of_column_) {
      Ranges& keys = keys_of_column_.emplace_back();
      for (const Index group : groups) {
        keys.push_back(keys_of_group(shape.m, key_groups(), group));
      }
      keys = joined(keys);
    }
  }

  // The queries, keys, blocks and groups of one part of a plan, for a kind of stage.
  struct Part {
    StageRows of;
    Ranges queries, keys;
    Numbers blocks, key_groups, query_groups;
  };
  [[nodiscard]] Part part(StageRows of, Index row, Index column) const {
    const auto r = static_cast<std::size_t>(row);
    const auto c = static_cast<std::size_t>(column);
    Part part{of,
              queries_of_row_[r],
              keys_of_column_[c],
              blocks_of_row_[r],
              groups_of_column_[c],
              groups_of_row_[r]};
    const Shape& shape = plan_.problem.shape;
    if (of == StageRows::own_queries) {
      part.queries = picked(part.queries, share(size_of(part.queries), column, columns_));
      part.keys = {{0, shape.m}};
    } else if (of == StageRows::own_keys) {
      part.keys = picked(part.keys, share(size_of(part.keys), row, rows_));
      part.queries = {{0, shape.n}};
    }
    return part;
  }

  [[nodiscard]] Plan plan_of(const Part& part) const {
    Plan plan = plan_;
    plan.problem.shape.n = size_of(part.queries);
    plan.problem.shape.m = size_of(part.keys);
    plan.phases.clear();
    const bool place = part.of == StageRows::place;
    if (!place) {
      plan.problem.mask = {};
    } else if (!plan.problem.mask.full()) {
      plan.problem.mask = plan.problem.mask.part(part.queries, part.keys);
    }
    const auto some = [&](std::string_view groups, std::string_view mark, Index all,
                          const Numbers& here) {
      if (all > 1) {
        plan.blocks.set(groups, place ? std::ssize(here) : all);
        plan.blocks.add(std::string(mark), all);
      }
    };
    some(kKeyGroups, kSomeGroups, key_groups(), part.key_groups);
    some(kQueryGroups, kSomeQueryGroups, query_groups(), part.query_groups);
    return plan;
  }

  // Returns the rows of a matrix that belong to a part. A matrix with a copy for each group gives
  // them copy by copy.
  [[nodiscard]] Ranges rows_of(const Signature& matrix, Index copies, const Part& part) const {
    const Shape& shape = plan_.problem.shape;
    const bool of_queries = matrix.rows == &Shape::n;
    if (!of_queries && matrix.rows != &Shape::m) {
      return {{0, matrix.rows_of(shape)}};
    }
    Numbers which = of_queries ? part.key_groups : part.query_groups;
    if (copies == 1 || part.of != StageRows::place) {
      which.resize(static_cast<std::size_t>(copies));
      std::iota(which.begin(), which.end(), 0);
    }
    Ranges rows;
    for (const Index copy : which) {
      for (const Range range : of_queries ? part.queries : part.keys) {
        const Index first = copy * matrix.rows_of(shape);
        rows.push_back({first + range.begin, first + range.end});
      }
    }
    return joined(rows);
  }

  void run_part(const SplitStage& stage, Index row, Index column) {
    const Part its = part(stage.of, row, column);
    if (size_of(its.queries) == 0 || size_of(its.keys) == 0) {
      return;
    }
    const Plan plan = plan_of(its);
    const Index units = stage.units(plan.problem, plan.blocks);
    if (units == 0) {
      return;
    }
    std::deque<SlowMatrix> views;
    Operands io;
    const auto view = [&](const Signature& matrix, Index copies) -> SlowMatrix& {
      return views.emplace_back(
          selected_rows(all_.at(std::string(matrix.name)), rows_of(matrix, copies, its)));
    };
    for (const Signature& operand : kernel_.given(plan_.problem)) {
      io.give(operand.name, view(operand, 1));
    }
    for (const Signature& result : kernel_.returned(plan_.problem)) {
      io.take(result.name, view(result, 1));
    }
    for (const Split::Copies& left : split().left_of(plan_.problem, plan_.blocks)) {
      io.take(left.matrix.name, view(left.matrix, left.copies));
    }
    SlowMatrix* partials = nullptr;
    if (split().add_partials) {
      Ranges rows;
      const Index d = plan_.problem.shape.d;
      for (const Index group : its.key_groups) {
        for (const Index block : its.blocks) {
          const Index unit = group * row_blocks() + block;
          rows.push_back({unit * d, (unit + 1) * d});
        }
      }
      partials = &views.emplace_back(selected_rows(all_.at("partial g"), joined(rows)));
    }
    const std::vector<PhaseCost> cost =
        stage.part_cost(plan.problem, plan.blocks, {0, units}, partials != nullptr);
    Machine machine(total(cost).peak.value());
    stage.part(machine, plan, io, {0, units}, partials);
    const PhaseCounts counted = total(machine.phases());
    EXPECT_EQ(Words(counted.io.reads), total(cost).reads);
    EXPECT_EQ(Words(counted.io.writes), total(cost).writes);
    if (plan.problem.mask.full()) {
      EXPECT_EQ(Words(counted.operations.flops), total(cost).flops);
      EXPECT_EQ(Words(counted.peak), total(cost).peak);
    }
  }

  const Kernel& kernel_;
  Plan plan_;
  Index rows_, columns_;
  std::map<std::string, SlowMatrix, std::less<>> all_;
  std::vector<Numbers> groups_of_row_, blocks_of_row_, groups_of_column_;
  std::vector<Ranges> queries_of_row_, keys_of_column_;
};

std::vector<std::string> on_grid() {
  std::vector<std::string> names;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.split() && kernel.split()->on_grid) {
      names.push_back(kernel.name);
    }
  }
  return names;
}

class GroupedKernel : public testing::TestWithParam<std::string> {};

// Returns a mask in which all queries and keys are live, because kernels work on live ones alone.
Mask some_mask(RandomMasks& random, Index n, Index m) {
  const Mask mask = random.expression(n, m).mask | random.expression(n, m).mask;
  return mask.live_queries() == Ranges{{0, n}} && mask.live_keys() == Ranges{{0, m}} ? mask
                                                                                     : Mask();
}

TEST_P(GroupedKernel, HasTheBitsOfTheWholeInParts) {
  RandomMasks random(11);
  int masked = 0;
  for (int k = 0; k < 400 && !HasFailure(); ++k) {
    KernelName name = *parse_kernel_name(GetParam());
    name.activation = k % 5 == 4 ? Activation::silu : Activation::softmax;
    TestedKernel kernel(name);
    Shape shape{random.any(1, 40), random.any(1, 40), random.any(1, 9)};
    if (kernel.takes_dv() && random.any(0, 2) == 0) {
      shape.dv = random.any(1, 9);
    }
    if (k % 2 == 0) {
      kernel.mask = some_mask(random, shape.n, shape.m);
    }
    if (!kernel.kernel->optional_results.empty() && random.any(0, 3) == 0) {
      kernel.want(random.any(0, 1) == 0 ? Wanted{"dQ"} : Wanted{"dK"});
    }
    masked += kernel.mask.full() ? 0 : 1;
    Plan plan = kernel.plan(shape, kernel.least_M(shape) + random.any(0, 300));
    plan.blocks.drop(kClustered);
    plan = kernel.in_groups(plan, random.any(1, std::min<Index>(shape.m, 9)),
                            random.any(1, std::min<Index>(shape.n, 9)));
    const Index T = ceil_div(shape.n, plan.blocks[plan.blocks.contains("Br") ? "Br" : "dQ.Br"]);
    const Index most_rows = kernel.groups_queries() ? std::min(plan.blocks[kQueryGroups], T) : T;
    const Index rows = random.any(1, std::min<Index>(most_rows, 4));
    const Index columns = random.any(1, std::min<Index>(plan.blocks[kKeyGroups], 4));
    SCOPED_TRACE(to_string(plan) + " in " + std::to_string(rows) + "x" + std::to_string(columns));
    const TestProblem problem = make_problem(kernel, shape, 1 + static_cast<std::uint64_t>(k), 2);
    InParts parts(kernel, plan, problem, rows, columns);
    parts.run();
    const Buffers whole = parts.whole(problem);
    for (const auto& [result, words] : parts.results()) {
      EXPECT_TRUE(same_bits({{result, words}}, {{result, whole.at(result)}})) << result;
    }
  }
  EXPECT_GT(masked, 20);
}

INSTANTIATE_TEST_SUITE_P(OnGrid, GroupedKernel, testing::ValuesIn(on_grid()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace redblue
