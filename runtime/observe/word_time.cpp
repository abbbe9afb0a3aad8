#include "runtime/observe/word_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <vector>

namespace redblue {
namespace {

class Copies {
 public:
  explicit Copies(std::uint64_t bytes)
      : half_(bytes / 2), piece_(std::min(half_, kPiece)), bytes_(2 * half_, 1) {}

  // Copies the next pieces and returns the time. The source changes before each copy, so that the
  // compiler does not merge copies.
  double nanoseconds(std::size_t pieces) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t k = 0; k < pieces; ++k) {
      at_ = at_ + piece_ <= half_ ? at_ : 0;
      bytes_[at_] ^= 1;
      std::memcpy(bytes_.data() + half_ + at_, bytes_.data() + at_, piece_);
      at_ += piece_;
    }
    bytes_[0] ^= bytes_[half_];
    const std::chrono::duration<double, std::nano> span = std::chrono::steady_clock::now() - begin;
    return span.count();
  }
  // The number of pieces in one half.
  [[nodiscard]] std::size_t pieces() const { return half_ / piece_; }
  [[nodiscard]] double words_of_piece() const {
    return 2 * static_cast<double>(piece_) / sizeof(float);  // read and written
  }

 private:
  static constexpr std::size_t kPiece = 64U << 10;
  std::size_t half_, piece_, at_ = 0;
  std::vector<unsigned char> bytes_;
};

}  // namespace

double nanoseconds_a_word(std::uint64_t bytes) {
  constexpr std::size_t kSamples = 99;
  constexpr double kSample = 5e4;  // long compared with reading the clock
  Copies copies(bytes);
  static_cast<void>(copies.nanoseconds(copies.pieces()));  // brings all pieces into the cache
  std::size_t pieces = 1;
  while (copies.nanoseconds(pieces) < kSample) {
    pieces *= 2;
  }
  std::vector<double> samples;
  for (std::size_t k = 0; k < std::max(kSamples, copies.pieces() / pieces); ++k) {
    samples.push_back(copies.nanoseconds(pieces));
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return *middle / static_cast<double>(pieces) / copies.words_of_piece();
}

}  // namespace redblue
