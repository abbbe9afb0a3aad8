// Listeners hear all arithmetic. A second evaluation in double precision, from the reported
// operations alone, gives the words that every kernel writes.

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/host_access.hpp"
#include "runtime/trace/follower.hpp"
#include "tests/support/kernel_requests.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

constexpr Shape kShape{13, 11, 5};

using Doubles = std::vector<double>;
using Function = std::function<double(const Doubles&)>;

double sigmoid(double s) {
  return 1 / (1 + std::exp(-s));
}
double silu_slope(double s) {
  return sigmoid(s) * (1 + s * (1 - sigmoid(s)));
}

// The arguments are the old word if it is used, the operands, and the constant.
const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> all = {
      {"add", [](const Doubles& x) { return x[0] + x[1]; }},
      {"add_logarithm", [](const Doubles& x) { return x[0] + std::log(x[1]); }},
      {"copy", [](const Doubles& x) { return x[0]; }},
      {"divide", [](const Doubles& x) { return x[0] / x[1]; }},
      {"divide_unless_0", [](const Doubles& x) { return x[1] == 0 ? x[0] : x[0] / x[1]; }},
      {"exp_difference", [](const Doubles& x) { return std::exp(x[0] - x[1]); }},
      {"multiply", [](const Doubles& x) { return x[0] * x[1]; }},
      {"fill", [](const Doubles& x) { return x[0]; }},
      {"relu", [](const Doubles& x) { return std::max(x[0], 0.0); }},
      {"relu_slope", [](const Doubles& x) { return x[0] > 0 ? 1.0 : 0.0; }},
      {"relu_gradient", [](const Doubles& x) { return x[0] > 0 ? x[1] : 0.0; }},
      {"scale", [](const Doubles& x) { return x[0] * x[1]; }},
      {"sigmoid", [](const Doubles& x) { return sigmoid(x[0]); }},
      {"sigmoid_slope", [](const Doubles& x) { return sigmoid(x[0]) * sigmoid(-x[0]); }},
      {"sigmoid_gradient", [](const Doubles& x) { return sigmoid(x[0]) * sigmoid(-x[0]) * x[1]; }},
      {"silu", [](const Doubles& x) { return x[0] * sigmoid(x[0]); }},
      {"silu_slope", [](const Doubles& x) { return silu_slope(x[0]); }},
      {"silu_gradient", [](const Doubles& x) { return silu_slope(x[0]) * x[1]; }},
      {"softmax_gradient", [](const Doubles& x) { return x[0] * (x[1] - x[2]); }},
      {"subtract", [](const Doubles& x) { return x[0] - x[1]; }},
      {"subtract_scaled", [](const Doubles& x) { return x[0] - x[1] * x[2]; }},
  };
  return all;
}

class Shadow final : public Follower {
 public:
  explicit Shadow(Machine& machine) : Follower(machine, Hears::moves_and_arithmetic) {}

  [[nodiscard]] double farthest() const { return farthest_; }
  [[nodiscard]] Index compared() const { return compared_; }
  [[nodiscard]] const std::string& unknown() const { return unknown_; }
  // Returns how often an operation took a word outside its rectangles.
  [[nodiscard]] Index outside() const { return outside_; }

 private:
  struct Held {
    Index columns;
    Doubles words;
  };

  double& word(const TilePart& part, Index i, Index j) {
    if (part.of != TilePart::Of::words) {
      i = part.of == TilePart::Of::rows ? i : j;
      j = 0;
    }
    if (part.transposed) {
      std::swap(i, j);
    }
    outside_ += i >= part.rows || j >= part.columns ? 1 : 0;
    Held& tile = tiles_.at(part.tile);
    return tile.words.at(static_cast<std::size_t>((part.row + i) * tile.columns + part.column + j));
  }

  void follow(const Event& event) override {
    if (event.kind == Event::Kind::initialize) {
      tiles_[event.tile] = {event.cols, Doubles(static_cast<std::size_t>(event.rows * event.cols),
                                                event.unset ? std::nan("") : event.value)};
    } else if (event.kind == Event::Kind::remove) {
      tiles_.erase(event.tile);
    } else if (event.block != nullptr && event.block->matrix().holds() != Holds::indices) {
      const SlowMatrix& matrix = event.block->matrix();
      std::vector<float> all(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
      HostAccess::get(matrix, all);
      if (event.kind == Event::Kind::read) {
        tiles_[event.tile] = {event.cols,
                              Doubles(static_cast<std::size_t>(event.rows * event.cols))};
      }
      each_word(event, [&](double& here, Index row, Index column) {
        const double there = all[static_cast<std::size_t>(row * matrix.cols() + column)];
        if (event.kind == Event::Kind::read) {
          here = there;
        } else {
          const double away = here == there ? 0 : std::abs(here - there) / (1 + std::abs(there));
          farthest_ = std::isnan(away) ? std::numeric_limits<double>::infinity()
                                       : std::max(farthest_, away);
          ++compared_;
        }
      });
    }
  }
  template <class Visit>
  void each_word(const Event& event, const Visit& visit) {
    const TilePart part = {.tile = event.tile,
                           .rows = event.rows,
                           .columns = event.cols,
                           .transposed = event.orientation == Orientation::transposed};
    const Range rows = event.block->row_range();
    const Range all = event.block->column_range();
    for (Index row = rows.begin; row < rows.end; ++row) {
      // Words that the store does not keep are read as 0, and are not written.
      const std::vector<Range> moved =
          event.kind == Event::Kind::read ? std::vector<Range>{all} : event.block->stored(row);
      for (const Range columns : moved) {
        for (Index column = columns.begin; column < columns.end; ++column) {
          visit(word(part, row - rows.begin, column - all.begin), row, column);
        }
      }
    }
  }

  void follow(const Operation& operation) override {
    using enum Operation::Form;
    const auto& operands = operation.operands;
    const TilePart& result = operation.result;
    if (operation.form == product) {
      const Index depth = operands[0].transposed ? operands[0].rows : operands[0].columns;
      for (Index i = 0; i < result.rows; ++i) {
        for (Index j = 0; j < result.columns; ++j) {
          double sum = operation.old ? word(result, i, j) : 0;
          for (Index k = 0; k < depth; ++k) {
            sum += word(operands[0], i, k) * word(operands[1], k, j);
          }
          word(result, i, j) = sum;
        }
      }
      return;
    }
    const bool turned = operation.form == fold && operands[0].transposed;
    const Index columns = operation.form == map ? result.columns
                          : turned              ? operands[0].rows
                                                : operands[0].columns;
    for (Index i = 0; i < result.rows; ++i) {
      for (Index j = 0; j < columns; ++j) {
        Doubles taken;
        for (const TilePart& operand : operands) {
          taken.push_back(word(operand, i, j));
        }
        if (operation.form == map) {
          if (operation.old) {
            taken.insert(taken.begin(), word(result, i, j));
          }
          taken.push_back(operation.constant);
          word(result, i, j) = value(operation.name, taken);
        } else {
          double& folded = word(result, i, 0);
          folded = operation.name == "maximum" ? std::max(folded, taken[0])
                   : operation.name == "sum"   ? folded + taken[0]
                                               : folded + taken[0] * taken[1];
        }
      }
    }
  }
  double value(std::string_view name, const Doubles& taken) {
    const auto known = functions().find(name);
    if (known == functions().end()) {
      unknown_ = name;
      return 0;
    }
    return known->second(taken);
  }

  std::map<std::uint64_t, Held> tiles_;
  double farthest_ = 0;
  Index compared_ = 0;
  Index outside_ = 0;
  std::string unknown_;
};

class TellingOf : public testing::TestWithParam<FollowedKernel> {};

TEST_P(TellingOf, OperationsMakeTheWordsThatAreWritten) {
  for (const Request& request : GetParam().requests(kShape)) {
    const auto evaluated = [&](Machine& machine, const Plan&, const std::function<void()>& go) {
      const Shadow shadow(machine);
      go();
      shadow.check();
      EXPECT_EQ(shadow.unknown(), "");
      EXPECT_GT(shadow.compared(), 0);
      EXPECT_EQ(shadow.outside(), 0);
      // A rounding error is far below this bound, and a wrong term far above.
      EXPECT_LT(shadow.farthest(), 1e-4) << said(request);
    };
    run(request, Topology(), {.kernel = evaluated, .peak_gflops = false});
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, TellingOf, testing::ValuesIn(followed_kernels()),
                         [](const auto& of) { return test_name(of.param.name); });

}  // namespace
}  // namespace redblue
