#pragma once
// Inputs made from a seed: the same numbers on every platform, any rows of them on their own.
//
// Element i (row-major) of an operand is a pure function of (seed, operand's name, i): a
// 24-bit hash of the three is a point u of the grid [-1, 1) of step 2^-23, exact in float32,
// and the element is factor * u, rounded once. The factors give the scores s = A1 X A2^T the
// standard deviation `scale`, and the values h = A3 Y the standard deviation 1 (see the
// source). No state, so any number of threads may call.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/shape.hpp"
#include "memsim/words.hpp"

namespace redblue {

// Rows [first_row, first_row + rows) of an operand, row-major: A1, dO (n x d), A2, A3 (m x d),
// X, Y (d x d), A (n x d), B (d x m). Only X depends on `scale`.
// Requires: out.size() == rows * columns of the operand.
// Throws: std::invalid_argument, also for a name that is none of these, rows out of range, and
// a scale that is not positive or would leave X without normal float32 numbers.
void fill_input(std::string_view operand, const Shape& shape, std::uint64_t seed, double scale,
                Index first_row, Index rows, std::span<float> out);

}  // namespace redblue
