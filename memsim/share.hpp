#pragma once
// Equal shares of consecutive things: share k of p has the part [total k / p, total (k + 1) / p).
// Shares differ by one at most, and are empty where there are fewer things than shares.

#include "memsim/range.hpp"

namespace redblue {

// Requires: total >= 0, 0 <= share < shares.
constexpr Range share_of(Index total, Index share, Index shares) {
  // The whole part and the rest are computed apart, so that nothing overflows.
  const auto bound = [&](Index k) { return total / shares * k + total % shares * k / shares; };
  return {bound(share), bound(share + 1)};
}

}  // namespace redblue
