// A kernel names a window for each operand, and a store lays the operand out in such windows. A run
// moves most words of the operand in these windows. Intermediates with such windows are read in
// them.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/sanitized.hpp"
#include "tests/support/run_kernel.hpp"

namespace redblue {
namespace {

// The moves of one matrix, as windows.
struct Move {
  Range rows, columns;
  [[nodiscard]] Index words() const { return rows.size() * columns.size(); }
};
struct Moves {
  std::vector<Move> read, written;
};

class RecordingBacking final : public Backing {
 public:
  RecordingBacking(std::unique_ptr<Backing> words, Moves& moves)
      : words_(std::move(words)), moves_(moves) {}
  void read(Range rows, Range columns, std::span<float> to) const override {
    words_->read(rows, columns, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    words_->write(rows, columns, from);
  }
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    moves_.read.push_back({rows, columns});
    words_->read_tile(rows, columns, orientation, to);
  }
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override {
    moves_.written.push_back({rows, columns});
    words_->write_tile(rows, columns, orientation, from);
  }

 private:
  std::unique_ptr<Backing> words_;
  Moves& moves_;
};

// Returns whether a range is a piece of an extent cut into pieces of `piece`. The last piece may be
// shorter.
bool is_piece(Range range, Index extent, Index piece) {
  return range.begin % piece == 0 && range.end == std::min(extent, range.begin + piece);
}

struct Share {
  Index named = 0, all = 0;
};

// Adds to `share` the words moved in windows that cut a rows x cols matrix, and all words moved.
void count(const std::vector<Move>& moves, Index rows, Index cols, Window window, Share& share) {
  for (const Move& move : moves) {
    share.all += move.words();
    if (is_piece(move.rows, rows, window.rows) && is_piece(move.columns, cols, window.cols)) {
      share.named += move.words();
    }
  }
}

std::vector<Shape> some_shapes() {
  return kSanitized ? std::vector<Shape>{{96, 96, 16}}
                    : std::vector<Shape>{{96, 96, 16}, {96, 192, 8}, {130, 17, 33}};
}

// At least half of the words. A matrix that moves once in each of two ways may be laid out for
// either.
TEST(Windows, OfOperandsAreThoseInWhichMostWordsMove) {
  int narrow = 0;
  for (const TestedKernel& kernel : tested_kernels()) {
    if (kernel.kernel->fitting.window == nullptr) {
      continue;
    }
    for (const Shape& shape : some_shapes()) {
      const auto [n, m, d] = shape;
      const Index least = kernel.least_M(shape);
      const TestProblem problem = make_problem(kernel, shape, 5);
      const Index everything = least + 4 * (n * d + m * d + d * d + n * m);
      for (const Index M : {least, 2 * least, 4 * least, 12 * least, everything}) {
        for (const Objective objective : {Objective::words, Objective::time}) {
          const Plan plan = kernel.plan(shape, M, objective);
          std::map<std::string, Moves, std::less<>> all;
          run_kernel(kernel, plan, problem,
                     [&](std::string_view operand, std::unique_ptr<Backing> words) {
                       return std::make_unique<RecordingBacking>(std::move(words),
                                                                 all[std::string(operand)]);
                     });
          std::vector<Signature> operands = kernel.given;
          operands.insert(operands.end(), kernel.returns.begin(), kernel.returns.end());
          for (const Signature& operand : operands) {
            const Index rows = operand.rows_of(shape);
            const Index cols = operand.cols_of(shape);
            const Window window = kernel.kernel->fitting.window(operand, plan.problem, plan.blocks);
            EXPECT_TRUE(0 < window.rows && window.rows <= rows);
            EXPECT_TRUE(0 < window.cols && window.cols <= cols);
            const Moves& moves = all[std::string(operand.name)];
            Share share;
            count(moves.read, rows, cols, window, share);
            count(moves.written, rows, cols, window, share);
            EXPECT_GE(2 * share.named, share.all) << to_string(plan) << ": " << operand.name
                                                  << " in " << window.rows << " x " << window.cols;
            narrow += window.cols < cols ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(narrow, kSanitized ? 30 : 100) << "hardly any window is narrower than its matrix";
}

class RecordingWorkspace final : public Workspace {
 public:
  struct Asked {
    std::string name;
    std::optional<Window> mostly;
    Index rows, cols;
    Moves moves;
  };
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly) override {
    asked_.push_back(std::make_unique<Asked>(Asked{name, mostly, rows, cols, {}}));
    return {std::move(name), rows, cols,
            std::make_unique<RecordingBacking>(std::make_unique<RamBacking>(rows, cols),
                                               asked_.back()->moves)};
  }
  [[nodiscard]] const auto& asked() const { return asked_; }

 private:
  std::vector<std::unique_ptr<Asked>> asked_;
};

TEST(Windows, OfIntermediatesAreThoseInWhichTheyAreRead) {
  std::map<std::string, std::set<std::string>> named;
  for (const TestedKernel& kernel : tested_kernels()) {
    for (const Shape& shape : some_shapes()) {
      const Index least = kernel.least_M(shape);
      const TestProblem problem = make_problem(kernel, shape, 5);
      for (const Index M : {least, 2 * least, 4 * least, 12 * least}) {
        const Plan plan = kernel.plan(shape, M);
        RecordingWorkspace workspace;
        run_kernel(kernel, plan, problem, {}, &workspace);
        for (const auto& intermediate : workspace.asked()) {
          if (intermediate->mostly) {
            Share share;
            count(intermediate->moves.read, intermediate->rows, intermediate->cols,
                  *intermediate->mostly, share);
            EXPECT_GT(share.all, 0);
            EXPECT_EQ(share.named, share.all) << to_string(plan) << ": " << intermediate->name;
            named[kernel.name].insert(intermediate->name);
          }
        }
      }
    }
  }
  using Names = std::set<std::string>;
  EXPECT_EQ(named["forward/flash"], (Names{"S", "h"}));
  EXPECT_EQ(named["backward/flash"], (Names{"Q", "V"}));
  EXPECT_EQ(named["backward/large"], (Names{"S", "h"}));
}

}  // namespace
}  // namespace redblue
