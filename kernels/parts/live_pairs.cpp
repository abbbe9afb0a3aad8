#include "kernels/parts/live_pairs.hpp"

#include "kernels/mask_bits.hpp"

namespace redblue {
namespace {

constexpr Index kBits = 64;  // of one number

std::size_t numbers_for(Index rows, Index columns) {
  return static_cast<std::size_t>(rows * ceil_div(columns, kBits));
}

// Returns the bits of a tile with rows and columns of the mask's bits.
std::vector<std::uint64_t> bits_of(const MaskBits& all, Range rows, Range columns) {
  std::vector<std::uint64_t> bits(numbers_for(rows.size(), columns.size()));
  std::uint64_t* to = bits.data();
  for (Index first = columns.begin; first < columns.end; first += kBits) {
    for (Index row = rows.begin; row < rows.end; ++row) {
      *to++ = all.from(row, first);
    }
  }
  return bits;
}

}  // namespace

std::vector<std::uint64_t> LivePairs::bits_of_queries() const {
  if (const MaskBits* const all = problem_.mask.bits()) {
    return bits_of(*all, I_, J_);
  }
  std::vector<std::uint64_t> bits(numbers_for(I_.size(), J_.size()));
  for (Index i = 0; i < I_.size(); ++i) {
    problem_.mask.each_range(I_.begin + i, J_, [&](Range live) {
      for (Index k = (live.begin - J_.begin) / kBits; J_.begin + k * kBits < live.end; ++k) {
        const Index first = J_.begin + k * kBits;
        const Index begin = std::max(live.begin - first, Index{0});
        const Index size = std::min(live.end - first, kBits) - begin;
        bits[static_cast<std::size_t>(k * I_.size() + i)] |= ~std::uint64_t{0} >> (kBits - size)
                                                                                      << begin;
      }
    });
  }
  return bits;
}

// A range of keys changes the bit of its query where it begins and where it ends. The number of a
// key then holds all changes up to this key.
std::vector<std::uint64_t> LivePairs::bits_of_keys() const {
  if (const MaskBits* const all = problem_.mask.bits_of_keys()) {
    return bits_of(*all, J_, I_);
  }
  std::vector<std::uint64_t> bits(numbers_for(J_.size(), I_.size()));
  for (const Range some : blocks(I_.size(), kBits)) {
    std::uint64_t* const of = bits.data() + some.begin / kBits * J_.size();
    for (Index i = some.begin; i < some.end; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << (i - some.begin);
      problem_.mask.each_range(I_.begin + i, J_, [&](Range live) {
        of[live.begin - J_.begin] ^= bit;
        if (live.end < J_.end) {
          of[live.end - J_.begin] ^= bit;
        }
      });
    }
    for (Index j = 1; j < J_.size(); ++j) {
      of[j] ^= of[j - 1];
    }
  }
  return bits;
}

}  // namespace redblue
