#pragma once
// The layout of a tile in fast memory: panels of kPanel columns, each row-major and contiguous. The
// last panel holds the remaining columns. A tile of at most kPanel columns is plain row-major.
//
// One row of a panel is one cache line, for tiles of any size, and no word is padding. A walk down
// a panel visits consecutive addresses. In a row-major tile with long rows of a power of two of
// words, that walk would compete for a few lines of the cache.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

inline constexpr Index kPanel = 16;

class Machine;

// Names the transpose of a tile, a block or a slow matrix. No word is moved.
template <class Matrix>
struct Transposed {
  Matrix of;

  template <class Other>
  requires std::convertible_to<Matrix, Other>
  operator Transposed<Other>() const { return {of}; }
};

// Whether a tile holds a block or its transpose.
enum class Orientation { straight, transposed };

// Walks the given rows and columns of a height x width block and of its tile. Calls visit(row,
// column, offset in the tile, words) for each run that is contiguous in both.
template <class Visit>
void for_tile_runs(Index height, Index width, Range rows, Range columns, const Visit& visit) {
  for (Index i = rows.begin; i < rows.end; ++i) {
    for (Index j = columns.begin; j < columns.end;) {
      const Index panel = j / kPanel * kPanel;
      const Index end = std::min(columns.end, panel + kPanel);
      visit(i, j, panel * height + i * std::min(kPanel, width - panel) + j - panel, end - j);
      j = end;
    }
  }
}

// The same for a tile that is the block's transpose. A run goes down a column of the block and is
// contiguous in the tile. A panel holds kPanel rows of the block.
template <class Visit>
void for_transposed_runs(Index height, Index width, Range rows, Range columns, const Visit& visit) {
  for (Index i = rows.begin; i < rows.end;) {
    const Index panel = i / kPanel * kPanel;
    const Index end = std::min(rows.end, panel + kPanel);
    const Index lanes = std::min(kPanel, height - panel);
    for (Index j = columns.begin; j < columns.end; ++j) {
      visit(i, j, panel * width + j * lanes + i - panel, end - i);
    }
    i = end;
  }
}

// A rectangle of a tile, for arithmetic. Its columns begin at a panel or lie within one panel.
// Indices are checked in every build. The arithmetic of kernels/ uses memsim/unchecked.hpp.
//
// A view is valid until the next tile is made, because the arena may then move its tiles. With
// assertions on, using an older view throws ShapeMismatch.
template <class Word>
class BasicView {
 public:
  operator BasicView<const Word>() const {
    return {*machine_, tiles_made_, panels_, height_, width_, row_, rows_, cols_};
  }

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] Index words() const { return rows_ * cols_; }
  [[nodiscard]] Index panels() const { return ceil_div(cols_, kPanel); }

  // Returns word (i, j). Throws, like the functions below: ShapeMismatch for an index outside the
  // view.
  [[nodiscard]] Word& operator()(Index i, Index j) const {
    check("row", i, rows_);
    check("column", j, cols_);
    return first_of(i, j / kPanel)[j % kPanel];
  }
  // Returns the first of the panel_cols(p) words of row i in panel p.
  [[nodiscard]] Word* at(Index i, Index p) const {
    check("row", i, rows_);
    check("panel", p, panels());
    return first_of(i, p);
  }
  // Returns the number of the view's columns in panel p.
  [[nodiscard]] Index panel_cols(Index p) const {
    check("panel", p, panels());
    return cols_of(p);
  }
  // Returns the distance in words from one row of panel p to the next.
  [[nodiscard]] Index stride(Index p) const {
    check("panel", p, panels());
    return stride_of(p);
  }

  // The machine to which arithmetic on the tile reports its operations.
  [[nodiscard]] Machine& machine() const { return *machine_; }

 private:
  friend class Machine;
  friend class Tile;
  friend class BasicView<std::remove_const_t<Word>>;
  template <class>
  friend class Unchecked;
  // `tiles_made` is the number of tiles that the machine has made so far. `height` is the number of
  // rows of the tile. `width` is the number of its columns from the view's first panel on.
  BasicView(Machine& machine, std::uint64_t tiles_made, Word* panels, Index height, Index width,
            Index row, Index rows, Index cols)
      : machine_(&machine),
        tiles_made_(tiles_made),
        panels_(panels),
        height_(height),
        width_(width),
        row_(row),
        rows_(rows),
        cols_(cols) {}

  [[nodiscard]] Word* first_of(Index i, Index p) const {
    return panels_ + p * kPanel * height_ + (row_ + i) * stride_of(p);
  }
  [[nodiscard]] Index cols_of(Index p) const { return std::min(kPanel, cols_ - p * kPanel); }
  [[nodiscard]] Index stride_of(Index p) const { return std::min(kPanel, width_ - p * kPanel); }
  void check(const char* what, Index which, Index extent) const {
    check_valid();
    if (!inside(which, extent)) [[unlikely]] {
      refuse(what, which);
    }
  }
  void check_valid() const {
#ifndef NDEBUG
    refuse_if_old();
#endif
  }
  // Throw (both): ShapeMismatch. The first throws only if a tile was made since this view.
  void refuse_if_old() const;
  [[noreturn]] void refuse(const char* what, Index which) const;

  Machine* machine_;
  std::uint64_t tiles_made_;
  Word* panels_;
  Index height_, width_, row_, rows_, cols_;
};

using View = BasicView<float>;
using ConstView = BasicView<const float>;

inline Transposed<ConstView> transposed(const ConstView& part) {
  return {part};
}
inline Transposed<View> transposed(const View& part) {
  return {part};
}

}  // namespace redblue
