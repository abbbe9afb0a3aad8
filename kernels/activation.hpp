#pragma once
// What makes f of a score: the softmax of its row; or a function phi of the score alone.

#include <cstdint>
#include <string_view>

#include "memsim/cxx20.hpp"

namespace redblue {

// relu: max(s, 0), with phi'(0) = 0; sigmoid: 1 / (1 + exp(-s)); silu: s sigmoid(s).
enum class Activation : std::uint8_t { softmax, relu, sigmoid, silu };

std::string_view to_string(Activation activation);

}  // namespace redblue
