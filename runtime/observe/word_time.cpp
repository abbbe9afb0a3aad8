#include "runtime/observe/word_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

namespace redblue {
namespace {

// Copies that often. The source changes before each copy, or the compiler would make one of them.
double nanoseconds(std::vector<unsigned char>& bytes, std::size_t times) {
  const std::size_t half = bytes.size() / 2;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < times; ++k) {
    bytes[k % half] ^= 1;
    std::memcpy(bytes.data() + half, bytes.data(), half);
    bytes[half] ^= bytes[half + k % half];
  }
  const std::chrono::duration<double, std::nano> span = std::chrono::steady_clock::now() - begin;
  return span.count();
}

}  // namespace

double nanoseconds_a_word(std::uint64_t bytes) {
  constexpr int kRounds = 9;
  constexpr double kRound = 1e6;  // beside which reading the clock takes no time
  std::vector<unsigned char> both(bytes / 2 * 2, 1);
  std::size_t times = 1;
  while (nanoseconds(both, times) < kRound) {
    times *= 2;
  }
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    least = std::min(least, nanoseconds(both, times));
  }
  return least / static_cast<double>(times) / (static_cast<double>(both.size()) / sizeof(float));
}

}  // namespace redblue
