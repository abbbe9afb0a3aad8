#pragma once
// Activations. An activation turns scores into f: by the softmax of each row, or by a function phi
// of each score.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "memsim/cxx20.hpp"

namespace redblue {

// phi is max(s, 0) for relu, with phi'(0) = 0. It is 1 / (1 + exp(-s)) for sigmoid, and s
// sigmoid(s) for silu.
enum class Activation : std::uint8_t { softmax, relu, sigmoid, silu };

// Returns the name in options, messages and files; empty if the value is not an activation.
constexpr std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::softmax:
      return "softmax";
    case Activation::relu:
      return "relu";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::silu:
      return "silu";
  }
  return {};
}

// Every activation, in the order of the enumeration. The compiler counts the names, so the list is
// always complete.
inline constexpr auto kActivations = [] {
  constexpr std::size_t kCount = [] {
    std::size_t count = 0;
    while (!name_of(static_cast<Activation>(count)).empty()) {
      ++count;
    }
    return count;
  }();
  std::array<Activation, kCount> all{};
  for (std::size_t k = 0; k < kCount; ++k) {
    all[k] = static_cast<Activation>(k);
  }
  return all;
}();

// Throws: ShapeMismatch if the value is not an activation.
std::string_view to_string(Activation activation);
std::optional<Activation> parse_activation(std::string_view name);

// For code that knows only functions of one score and got another activation. Throws:
// ShapeMismatch.
[[noreturn]] void refuse_activation(Activation activation);

}  // namespace redblue
