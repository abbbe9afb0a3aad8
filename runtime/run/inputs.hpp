#pragma once
// Inputs made from a seed: the same numbers on every platform, for any range of rows.
//
// Element i (row-major) of an operand is a pure function of (seed, operand's name, i): a
// 24-bit hash of the three is a point u of the grid [-1, 1) of step 2^-23, exact in float32,
// and the element is factor * u, rounded once. The factors give the scores s = A1 X A2^T, or c Q
// K^T, the standard deviation `scale`, and the values h = A3 Y the standard deviation 1 (see the
// source). Of sparse operands, stored entries alone are elements; X has the factor by which live
// scores have that deviation, of the mean number of products of one. The functions have no state
// and may be called from any number of threads.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"

namespace redblue {

// The seed where all operands come from one and the request has none.
inline constexpr std::uint64_t kDefaultSeed = 1;

// Rows [first_row, first_row + rows) of an operand, row-major: A1, dO (n x d), A2, A3 (m x d),
// X, Y (d x d), A (n x d), B (d x m), Q (n x d), K, V (m x d). Only X and Q depend on `scale`.
// Requires: out.size() == rows * columns of the operand.
// Throws: std::invalid_argument, also for another name, for rows out of range, and for a scale
// that is not positive or would leave X or Q without normal float32 numbers.
void fill_input(std::string_view operand, const Problem& problem, std::uint64_t seed, double scale,
                Index first_row, Index rows, std::span<float> out);

// The hashes of (seed, name, i), of which elements are made: element i is of hash i + 1.
class Hashes {
 public:
  Hashes(std::uint64_t seed, std::string_view name);
  std::uint64_t operator[](std::uint64_t i) const;

 private:
  std::uint64_t start_;
};

// The same of one operand, for many ranges of its rows. Its name must outlive it.
class InputMaker {
 public:
  InputMaker(std::string_view operand, const Problem& problem, std::uint64_t seed, double scale);
  void fill(Index first_row, Index rows, std::span<float> out) const;

 private:
  std::string_view operand_;
  Hashes hashes_;
  Index rows_ = 0, cols_ = 0;
  float factor_ = 0;
};

}  // namespace redblue
