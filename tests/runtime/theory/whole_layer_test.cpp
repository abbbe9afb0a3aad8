// The gradients of a layer that are made of dQ and dV: their values, and bounds that hold for dQ
// and dV as wrong as these may be, and are no larger than that asks for.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/theory/reference.hpp"

namespace redblue {
namespace {

struct LayerInput {
  explicit LayerInput(const Shape& of) : shape(of) {
    const auto made = [&](std::string_view name, Index rows) {
      std::vector<float> words(static_cast<std::size_t>(rows * shape.d));
      fill_input(name, Problem(shape), 5, 2, 0, rows, words);
      return words;
    };
    A1 = made("A1", shape.n);
    A2 = made("A2", shape.m);
    A3 = made("A3", shape.m);
    X = made("X", shape.d);
    Y = made("Y", shape.d);
    dO = made("dO", shape.n);
  }
  [[nodiscard]] AttentionInput input() const { return {shape, A1, A2, A3, X, Y, dO, {}, {}}; }

  Shape shape;
  std::vector<float> A1, A2, A3, X, Y, dO;
};

// One word of a product: the words of what is made, with their errors, and those of what is given.
struct LayerWord {
  std::vector<double> value, bound, expected, factor;

  void add(const Bounded& made, Index at, float other) {
    const auto k = static_cast<std::size_t>(at);
    value.push_back(made.value[k]);
    bound.push_back(made.bound[k]);
    expected.push_back(made.expected[k]);
    factor.push_back(static_cast<double>(other));
  }
  [[nodiscard]] double exact() const {
    double sum = 0;
    for (std::size_t k = 0; k < value.size(); ++k) {
      sum += value[k] * factor[k];
    }
    return sum;
  }
  // In float32, of words that are off by their whole error to one side.
  [[nodiscard]] float worst(const std::vector<double>& error, bool up, bool backwards) const {
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < value.size(); ++k) {
      order.push_back(backwards ? value.size() - 1 - k : k);
    }
    float sum = 0;
    for (const std::size_t k : order) {
      const double off = (factor[k] < 0) == up ? -error[k] : error[k];
      const double within = off * (1 - 1e-6) - std::copysign(std::abs(value[k]) * 0x1p-23, off);
      const bool room = std::abs(off) > std::abs(value[k]) * 0x1p-22;  // to round it to a float
      sum += static_cast<float>(value[k] + (room ? within : 0)) * static_cast<float>(factor[k]);
    }
    return sum;
  }
};

void expect_covers(const LayerWord& word, const Bounded& found, Index at, double& closest) {
  const auto k = static_cast<std::size_t>(at);
  double size = 0;
  for (std::size_t l = 0; l < word.value.size(); ++l) {
    size += std::abs(word.value[l] * word.factor[l]);
  }
  EXPECT_NEAR(found.value[k], word.exact(), 1e-13 * size);
  EXPECT_LE(found.expected[k], found.bound[k]);
  for (const bool up : {false, true}) {
    for (const bool backwards : {false, true}) {
      const double off =
          std::abs(static_cast<double>(word.worst(word.bound, up, backwards)) - found.value[k]);
      EXPECT_LE(off, found.bound[k]);
      closest = std::max(closest, off / found.bound[k]);
      EXPECT_LE(
          std::abs(static_cast<double>(word.worst(word.expected, up, backwards)) - found.value[k]),
          found.expected[k]);
    }
  }
}

TEST(LayerReference, CoversProductsOfWhatIsWrong) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{7, 5, 3}, Shape{13, 40, 8}, Shape{3, 2, 17}}) {
    const auto [n, m, d] = shape;
    const LayerInput layer(shape);
    const Reference reference = evaluate(layer.input(), {});
    const LayerReference found = evaluate_layer(layer.input(), reference);
    ASSERT_EQ(std::ssize(found.dA1.value), n * d);
    ASSERT_EQ(std::ssize(found.dA3.value), m * d);
    ASSERT_EQ(std::ssize(found.dY.value), d * d);
    double closest = 0;
    const auto rows = [&](const Bounded& of, const Bounded& made, const std::vector<float>& W,
                          Index count, Index width) {
      for (Index at = 0; at < count * width; ++at) {
        LayerWord word;
        for (Index l = 0; l < width; ++l) {
          word.add(made, at / width * width + l,
                   W[static_cast<std::size_t>(at % width * width + l)]);
        }
        expect_covers(word, of, at, closest);
      }
    };
    rows(found.dA1, reference.dQ, layer.X, n, d);
    rows(found.dA3, reference.dV, layer.Y, m, d);
    for (Index at = 0; at < d * d; ++at) {
      LayerWord word;
      for (Index j = 0; j < m; ++j) {
        word.add(reference.dV, j * shape.d + at % shape.d,
                 layer.A3[static_cast<std::size_t>(j * shape.d + at / shape.d)]);
      }
      expect_covers(word, found.dY, at, closest);
    }
    EXPECT_GT(closest, 0.5);
  }
}

TEST(LayerReference, RefusesWhatIsNoLayer) {
  const LayerInput layer({4, 3, 2});
  AttentionInput forward = layer.input();
  forward.dO = {};
  EXPECT_THROW(static_cast<void>(evaluate_layer(forward, evaluate(forward, {}))), ShapeMismatch);
  AttentionInput plain = layer.input();
  plain.X = plain.Y = {};
  EXPECT_THROW(static_cast<void>(evaluate_layer(plain, evaluate(plain, {}))), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
