// Tests occupancy, column by column, against the full list of states. There are no more columns
// than needed.

#include "runtime/trace/occupancy.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/run/run.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

using State = std::map<std::string, Index>;

Index live(const State& state) {
  Index sum = 0;
  for (const auto& [name, words] : state) {
    sum += words;
  }
  return sum;
}

// Records every state, and the counts of moved words at its begin and end.
class States final : public Listener {
 public:
  struct Lasting {
    State state;
    Index begin, end;
  };
  explicit States(Machine& machine) : machine_(machine) { machine_.listen(*this); }
  ~States() override { machine_.silence(*this); }

  void on(const Event& event) noexcept override {
    const bool comes = event.kind == Event::Kind::read || event.kind == Event::Kind::initialize;
    if (comes || event.kind == Event::Kind::remove) {
      now_[std::string(event.name)] += comes ? event.words : -event.words;
      states.push_back({now_, moved, moved});
    }
    if (event.block != nullptr) {
      moved += event.moved;
      states.back().end = moved;
    }
  }
  std::vector<Lasting> states;
  Index moved = 0;

 private:
  Machine& machine_;
  State now_;
};

// Returns the most live words in a column from `begin` to `end`. Lasting states count if they
// overlap it. Passing states count if they are within it. The end is included. The begin is
// included only in the first column.
Index most_in(const States& all, Index begin, Index end) {
  Index most = 0;
  for (const auto& [state, from, to] : all.states) {
    const bool lasts = from < to && from < end && to > begin;
    const bool passes = (from > begin || begin == 0) && from <= end;
    if (lasts || passes) {
      most = std::max(most, live(state));
    }
  }
  return most;
}

void expect_recounted(const Occupancy& found, const States& all, Index most_columns, Index peak) {
  const auto columns = static_cast<Index>(found.columns().size());
  EXPECT_LE(columns, most_columns);
  EXPECT_EQ(found.moved(), all.moved);
  EXPECT_EQ(columns, std::max<Index>(1, ceil_div(all.moved, found.width())));
  // A column is no wider than necessary.
  EXPECT_TRUE(found.width() == 1 || ceil_div(all.moved, found.width() / 2) > most_columns);
  EXPECT_EQ(found.peak(), peak);
  Index most = 0;
  for (Index k = 0; k < columns; ++k) {
    const Occupancy::Column& column = found.columns()[static_cast<std::size_t>(k)];
    EXPECT_EQ(column.live, most_in(all, k * found.width(), (k + 1) * found.width())) << k;
    most = std::max(most, column.live);
    // Each column is a real state, name by name.
    State state;
    for (std::size_t name = 0; name < column.words.size(); ++name) {
      state[found.names()[name]] = column.words[name];
    }
    EXPECT_EQ(live(state), column.live);
    EXPECT_TRUE(std::ranges::any_of(all.states,
                                    [&](const States::Lasting& lasting) {
                                      return std::ranges::all_of(state, [&](const auto& item) {
                                        const auto there = lasting.state.find(item.first);
                                        return (there == lasting.state.end() ? 0 : there->second) ==
                                               item.second;
                                      });
                                    }) ||
                column.live == 0);
  }
  EXPECT_EQ(most, peak) << "no peak is lost";
}

TEST(Occupancy, EqualsARecount) {
  // In the last run, words of sums weigh two.
  const std::vector<std::tuple<const char*, Shape, Index>> runs = {
      {"backward/small", {37, 29, 11}, 100}, {"backward/small", {7, 5, 3}, 20},
      {"backward/rows", {50, 41, 7}, 700},   {"backward/large", {33, 21, 5}, 400},
      {"forward/flash", {45, 31, 6}, 300},   {"matmul/blocked", {13, 17, 10}, 50},
      {"backward/columns", {50, 41, 7}, 900}};
  for (const auto& [kernel, shape, M] : runs) {
    for (const Index columns : {1, 2, 7, 64, 1000}) {
      SCOPED_TRACE(fmt::format("{} in {} columns", kernel, columns));
      Request request;
      request.kernel = kernel;
      std::tie(request.n, request.m, request.d) = std::tuple(shape.n, shape.m, shape.d);
      request.M = M;
      if (request.kernel == "backward/columns") {
        request = with_wide_sums(request);
      }
      const auto recount = [&, most = columns](Machine& machine, const Plan&, const auto& go) {
        const Occupancy occupancy(machine, most);
        const States states(machine);
        go();
        const PhaseCounts all = total(machine.phases());
        occupancy.check();
        EXPECT_EQ(occupancy.moved(), all.io.io());
        expect_recounted(occupancy, states, most, all.peak);
      };
      run(request, Topology(), {.kernel = recount, .peak_gflops = false});
    }
  }
}

TEST(Occupancy, EqualsARecountOfRandomMoves) {
  std::mt19937 random(1);
  const auto below = [&](Index most) { return static_cast<Index>(random()) % most; };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Machine machine(1000);
    SlowMatrix A("A", 10, 10);
    SlowMatrix B("B", 10, 10);
    const Index columns = 1 + below(20);
    const Occupancy occupancy(machine, columns);
    const States states(machine);
    std::vector<Tile> tiles;
    for (Index moves = below(60); moves > 0; --moves) {
      SlowMatrix& matrix = below(2) == 0 ? A : B;
      const Index rows = 1 + below(10);
      switch (below(4)) {
        case 0:
          if (machine.live() + rows <= machine.capacity()) {
            tiles.push_back(machine.initialize(below(2) == 0 ? "s" : "t", rows));
          }
          break;
        case 1:
          if (machine.live() + 10 * rows <= machine.capacity()) {
            tiles.push_back(machine.read(matrix.row_block({0, rows})));
          }
          break;
        case 2:
          if (!tiles.empty() && tiles.back().cols() == 10) {
            machine.write(tiles.back(), matrix.row_block({0, tiles.back().rows()}));
          }
          break;
        default:
          if (!tiles.empty()) {
            tiles.pop_back();
          }
      }
    }
    tiles.clear();
    expect_recounted(occupancy, states, columns, total(machine.phases()).peak);
  }
}

TEST(Occupancy, PhasesInWords) {
  Machine machine(100);
  SlowMatrix A("A", 1, 10);
  const Occupancy occupancy(machine, 5);
  const auto move = [&](Index words) {
    const Tile tile = machine.initialize("t", 1, words);
    machine.write(tile, A.block({0, 1}, {0, words}));
  };
  move(1);
  {
    const Phase outer(machine, "outer");
    { const Phase inner(machine, "still"); }
    for (int k = 0; k < 2; ++k) {
      const Phase inner(machine, "inner");
      move(4);
    }
    move(3);
  }
  std::vector<std::tuple<std::string, Index, Index>> spans;
  for (const auto& [path, begin, end] : occupancy.spans()) {
    spans.emplace_back(path, begin, end);
  }
  EXPECT_EQ(spans, (std::vector<std::tuple<std::string, Index, Index>>{
                       {"", 0, 1}, {"outer/inner", 1, 9}, {"outer", 9, 12}}));
}

}  // namespace
}  // namespace redblue
