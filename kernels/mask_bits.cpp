#include "kernels/mask_bits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "kernels/mask.hpp"

namespace redblue {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Returns a word with the bits of the range set. Its first bit has the number `first`.
std::uint64_t bits_within(Range range, Index first) {
  const Index begin = std::clamp<Index>(range.begin - first, 0, 64);
  const Index end = std::clamp<Index>(range.end - first, 0, 64);
  return begin >= end ? 0 : kAll >> (64 - (end - begin)) << begin;
}

// Adds neighbouring bits, then pairs of them, then all bytes. Without an instruction for it,
// std::popcount() is a call that looks up bytes in a table.
Index bits_set(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<Index>(word * 0x0101010101010101 >> 56);
}

void set_bits(std::uint64_t* words, Range range) {
  for (Index first = range.begin / 64 * 64; first < range.end; first += 64) {
    words[first / 64] |= bits_within(range, first);
  }
}

// Transposes 64 x 64 bits. It swaps the two quarters off the diagonal. Then it does the same within
// each quarter, and so on.
void transpose_bits(std::array<std::uint64_t, 64>& rows) {
  std::uint64_t low = 0xffffffff;  // the lower half of each group of columns
  for (unsigned half = 32; half > 0; half /= 2, low ^= low << half) {
    for (unsigned k = 0; k < 64; k = (k + half + 1) & ~half) {
      const std::uint64_t swapped = (rows[k] >> half ^ rows[k + half]) & low;
      rows[k] ^= swapped << half;
      rows[k + half] ^= swapped;
    }
  }
}

}  // namespace

MaskBits::MaskBits(Index queries, Index keys)
    : queries_(queries),
      keys_(keys),
      stride_(words_for(keys)),
      words_(static_cast<std::size_t>(queries * stride_)) {}

MaskBits::MaskBits(Index queries, Index keys, std::span<const MaskRun> runs)
    : MaskBits(queries, keys) {
  for (const MaskRun& run : runs) {
    for (Index i = run.queries.begin; i < run.queries.end; ++i) {
      for (const MaskSegment& segment : run.live) {
        set_bits(row(i), segment.of(i));
      }
    }
  }
}

Index MaskBits::pairs(Range queries, Range keys) const {
  Index sum = 0;
  for (Index first = keys.begin / kWord * kWord; first < keys.end; first += kWord) {
    const std::uint64_t wanted = bits_within(keys, first);
    for (Index i = queries.begin; i < queries.end; ++i) {
      sum += bits_set(row(i)[first / kWord] & wanted);
    }
  }
  return sum;
}

Range MaskBits::hull(Range queries, Range keys) const {
  Range all{keys.end, keys.begin};
  for (Index i = queries.begin; i < queries.end && all != keys; ++i) {
    const auto live = [&](Index word) { return row(i)[word] & bits_within(keys, word * kWord); };
    // Only keys outside the hull so far can change it.
    for (Index word = keys.begin / kWord; word * kWord < all.begin; ++word) {
      if (const std::uint64_t bits = live(word); bits != 0) {
        all.begin = std::min(all.begin, word * kWord + std::countr_zero(bits));
        break;
      }
    }
    for (Index word = (keys.end - 1) / kWord; (word + 1) * kWord > all.end && word >= 0; --word) {
      if (const std::uint64_t bits = live(word); bits != 0) {
        all.end = std::max(all.end, (word + 1) * kWord - std::countl_zero(bits));
        break;
      }
    }
  }
  return all.size() > 0 ? all : Range{keys.begin, keys.begin};
}

Ranges MaskBits::keys(Range queries) const {
  std::vector<std::uint64_t> met(static_cast<std::size_t>(stride_));
  for (Index i = queries.begin; i < queries.end; ++i) {
    std::transform(met.begin(), met.end(), row(i), met.begin(), std::bit_or<>());
  }
  Ranges ranges;
  bool live = false;
  for (std::size_t k = 0; k < met.size(); ++k) {
    // Each step goes to the next bit that differs from the one before it.
    const std::uint64_t word = met[k];
    for (int at = 0; at < 64;) {
      const std::uint64_t left = (live ? ~word : word) >> at;
      if (left == 0) {
        break;
      }
      at += std::countr_zero(left);
      const Index key = static_cast<Index>(k) * kWord + at;
      if (live) {
        ranges.back().end = key;
      } else {
        ranges.push_back({key, key});
      }
      live = !live;
    }
  }
  return ranges;
}

MaskBits MaskBits::transposed() const {
  MaskBits turned(keys_, queries_);
  std::array<std::uint64_t, 64> block{};
  for (Index i = 0; i < queries_; i += kWord) {
    const Index rows = std::min(queries_ - i, kWord);
    for (Index j = 0; j < keys_; j += kWord) {
      block.fill(0);
      for (Index k = 0; k < rows; ++k) {
        block[static_cast<std::size_t>(k)] = row(i + k)[j / kWord];
      }
      transpose_bits(block);
      for (Index k = 0; k < std::min(keys_ - j, kWord); ++k) {
        turned.row(j + k)[i / kWord] = block[static_cast<std::size_t>(k)];
      }
    }
  }
  return turned;
}

}  // namespace redblue
