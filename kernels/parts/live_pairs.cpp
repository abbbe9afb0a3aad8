#include "kernels/parts/live_pairs.hpp"

#include "kernels/mask_bits.hpp"

namespace redblue {
namespace {

std::size_t numbers_for(Index rows, Index columns) {
  return static_cast<std::size_t>(rows * ceil_div(columns, kPanel));
}

// Returns the bits of a tile with rows and columns of the mask's bits.
std::vector<std::uint16_t> bits_of(const MaskBits& all, Range rows, Range columns) {
  constexpr Index kPanels = 64 / kPanel;  // of one word of bits
  const Index panels = ceil_div(columns.size(), kPanel);
  std::vector<std::uint16_t> bits(numbers_for(rows.size(), columns.size()));
  for (Index p = 0; p < panels; p += kPanels) {
    const Index here = std::min(panels - p, kPanels);
    std::uint16_t* to = bits.data() + p * rows.size();
    for (Index row = rows.begin; row < rows.end; ++row, ++to) {
      std::uint64_t word = all.from(row, columns.begin + p * kPanel);
      for (Index k = 0; k < here; ++k, word >>= kPanel) {
        to[k * rows.size()] = static_cast<std::uint16_t>(word);
      }
    }
  }
  return bits;
}

}  // namespace

std::vector<std::uint16_t> LivePairs::bits_of_queries() const {
  if (const MaskBits* const all = problem_.mask.bits()) {
    return bits_of(*all, I_, J_);
  }
  std::vector<std::uint16_t> bits(numbers_for(I_.size(), J_.size()));
  for (Index i = 0; i < I_.size(); ++i) {
    problem_.mask.each_range(I_.begin + i, J_, [&](Range live) {
      for (Index p = (live.begin - J_.begin) / kPanel; J_.begin + p * kPanel < live.end; ++p) {
        const Index first = J_.begin + p * kPanel;
        const Index begin = std::max(live.begin - first, Index{0});
        const Index end = std::min(live.end - first, kPanel);
        bits[static_cast<std::size_t>(p * I_.size() + i)] |=
            static_cast<std::uint16_t>((1U << end) - (1U << begin));
      }
    });
  }
  return bits;
}

// A range of keys changes the bit of its query where it begins and where it ends. The number of a
// key then holds all changes up to this key.
std::vector<std::uint16_t> LivePairs::bits_of_keys() const {
  if (const MaskBits* const all = problem_.mask.bits_of_keys()) {
    return bits_of(*all, J_, I_);
  }
  std::vector<std::uint16_t> bits(numbers_for(J_.size(), I_.size()));
  for (const Range panel : blocks(I_.size(), kPanel)) {
    std::uint16_t* const of = bits.data() + panel.begin / kPanel * J_.size();
    for (Index i = panel.begin; i < panel.end; ++i) {
      const auto bit = static_cast<std::uint16_t>(1U << (i - panel.begin));
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
