#pragma once
// Half-open ranges of rows or columns, and the walk over them in blocks:
//
//   for (const Range I : blocks(n, B)) { ... }     // the last block may be shorter

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "memsim/errors.hpp"
#include "memsim/words.hpp"

namespace redblue {

struct Range {
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] constexpr Index size() const { return end - begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

// Returns `part`, which counts from the beginning of `range`, as a range of the whole.
constexpr Range part_of(Range range, Range part) {
  return {range.begin + part.begin, range.begin + part.end};
}

constexpr Range common(Range a, Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// True if 0 <= i < extent, in one comparison. Requires: extent >= 0.
constexpr bool inside(Index i, Index extent) {
  return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(extent);
}

// The extents of a rectangle of a matrix.
struct Window {
  Index rows, cols;
};

// Returns the smallest block that cuts `extent` into as many pieces as `block` does.
constexpr Index even(Index extent, Index block) {
  return ceil_div(extent, ceil_div(extent, block));
}

// The ranges [0, B), [B, 2B), ... that cut [0, extent).
class BlockRanges {
 public:
  class iterator {
   public:
    constexpr iterator(Index begin, Index extent, Index step)
        : begin_(begin), extent_(extent), step_(step) {}
    constexpr Range operator*() const {
      return {begin_, begin_ + std::min(step_, extent_ - begin_)};
    }
    constexpr iterator& operator++() {
      begin_ += std::min(step_, extent_ - begin_);
      return *this;
    }
    constexpr bool operator==(const iterator& other) const { return begin_ == other.begin_; }

   private:
    Index begin_, extent_, step_;
  };

  BlockRanges(Index extent, Index step) : extent_(extent), step_(step) {
    require(extent >= 0, "an extent is not negative");
    require(step > 0, "a block has at least one row or column");
  }
  [[nodiscard]] iterator begin() const { return {0, extent_, step_}; }
  [[nodiscard]] iterator end() const { return {extent_, extent_, step_}; }
  [[nodiscard]] Index size() const { return ceil_div(extent_, step_); }
  [[nodiscard]] Range operator[](Index k) const { return *iterator(k * step_, extent_, step_); }

 private:
  Index extent_, step_;
};

inline BlockRanges blocks(Index extent, Index step) {
  return {extent, step};
}

// Blocks of at most `step` that cut the given ranges one after the other. A block never spans two
// ranges.
class Pieces {
 public:
  class iterator {
   public:
    iterator(const Pieces& pieces, Index which) : pieces_(&pieces), which_(which) {}
    Range operator*() const { return (*pieces_)[which_]; }
    iterator& operator++() {
      ++which_;
      return *this;
    }
    bool operator==(const iterator& other) const { return which_ == other.which_; }

   private:
    const Pieces* pieces_;
    Index which_;
  };

  Pieces(const std::vector<Range>& ranges, Index step) : step_(step) {
    require(step > 0, "a block has at least one row or column");
    for (const Range range : ranges) {
      cuts_.push_back({size_, range});
      size_ += ceil_div(range.size(), step);
    }
  }
  [[nodiscard]] iterator begin() const { return {*this, 0}; }
  [[nodiscard]] iterator end() const { return {*this, size_}; }
  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] Range operator[](Index k) const {
    const Cut& cut = *std::prev(std::ranges::upper_bound(cuts_, k, {}, &Cut::first));
    const Index begin = cut.range.begin + (k - cut.first) * step_;
    return {begin, begin + std::min(step_, cut.range.end - begin)};
  }

 private:
  struct Cut {
    Index first;  // the index of the range's first block
    Range range;
  };
  std::vector<Cut> cuts_;
  Index step_;
  Index size_ = 0;
};

}  // namespace redblue
