#pragma once
// Makes inputs from a seed: the same numbers on every platform, for any range of rows.
//
// Element i (row-major) of an operand depends only on (seed, operand's name, i). A 24-bit hash of
// the three selects a point u of the grid [-1, 1) with step 2^-23, exact in float32. The element is
// factor * u, rounded once.
//
// The factors give the scores s = A1 X A2^T, or c Q K^T, the standard deviation `scale`, and the
// values h = A3 Y the standard deviation 1 (see the source). In sparse operands, only stored
// entries are elements. The factor of X then gives live scores this deviation on average: it uses
// the mean number of products in a live score.
//
// The functions have no state, and any number of threads may call them.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"

namespace redblue {

// The seed if all operands come from a seed and the request does not name one.
inline constexpr std::uint64_t kDefaultSeed = 1;

// Fills `out` with rows [first_row, first_row + rows) of an operand, row-major. Only X and Q depend
// on `scale`.
//
//   A1, A, Q  n x d      A2, A3, K  m x d      X, Y  d x d
//   dO        n x dv     V          m x dv     B     d x m
//
// Requires: out.size() == rows * columns of the operand. Throws: std::invalid_argument for another
// name, for rows out of range, and for a scale that is not positive. The same for a scale that
// makes elements of X or Q too large or too small for normal float32 numbers.
void fill_input(std::string_view operand, const Problem& problem, std::uint64_t seed, double scale,
                Index first_row, Index rows, std::span<float> out);

// The hashes of (seed, name, i). Element i uses hash i + 1.
class Hashes {
 public:
  Hashes(std::uint64_t seed, std::string_view name);
  std::uint64_t operator[](std::uint64_t i) const;

 private:
  std::uint64_t start_;
};

// Fills many ranges of rows of one operand, as fill_input() does. The name must outlive this
// object.
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
