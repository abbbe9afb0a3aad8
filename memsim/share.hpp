#pragma once
// Equal shares of consecutive items: share k of p is the range [total k / p, total (k + 1) / p).
// Shares differ by at most one item. Some are empty if there are fewer items than shares.

#include "memsim/range.hpp"

namespace redblue {

// Requires: total >= 0, 0 <= share < shares.
constexpr Range share_of(Index total, Index share, Index shares) {
  // Quotient and remainder are multiplied separately, so that no product overflows.
  const auto bound = [&](Index k) { return total / shares * k + total % shares * k / shares; };
  return {bound(share), bound(share + 1)};
}

}  // namespace redblue
