#pragma once
// The layout of a matrix in a file. The matrix is cut into blocks, the windows in which it will be
// read and written. Each block is cut into granules, the smallest units of reads and writes. The
// words of a granule lie row after row in its slot, and the slots of a block are adjacent. A block
// therefore takes a few large requests. If the matrix is as wide as its blocks, its rows follow
// each other as in memory.

#include <algorithm>

#include "memsim/range.hpp"

namespace redblue {

// An extent cut into blocks of `block` items, and each block into pieces of `piece` items.
struct Cut {
  Index extent = 1, block = 1, piece = 1;

  struct Piece {
    Index block;   // the number of the block
    Index within;  // the number of the piece in that block
    Range range;
  };
  [[nodiscard]] Index blocks() const { return ceil_div(extent, block); }
  // The number of pieces of a whole block, of block `which`, and of all blocks.
  [[nodiscard]] Index pieces() const { return ceil_div(block, piece); }
  [[nodiscard]] Index pieces_of(Index which) const {
    return ceil_div(std::min(block, extent - which * block), piece);
  }
  [[nodiscard]] Index all_pieces() const {
    return (blocks() - 1) * pieces() + pieces_of(blocks() - 1);
  }
  [[nodiscard]] Piece at(Index coordinate) const {
    const Index which = coordinate / block;
    const Index within = coordinate % block / piece;
    const Index begin = which * block + within * piece;
    return {which, within, {begin, std::min({begin + piece, (which + 1) * block, extent})}};
  }
};

struct Granule {
  Index number = 0;  // number of its slot in the file
  Range rows, columns;

  [[nodiscard]] Index words() const { return rows.size() * columns.size(); }
};

struct StoreLayout {
  Cut rows, columns;

  // Direct requests begin and end at multiples of this many bytes.
  static constexpr Index kSector = 4096;

  [[nodiscard]] Index granules() const { return rows.all_pieces() * columns.all_pieces(); }
  [[nodiscard]] Index slot_bytes() const {
    return ceil_div(rows.piece * columns.piece * Index{sizeof(float)}, kSector) * kSector;
  }
  // Calls visit(const Granule&) for each granule that overlaps a window, in the order of their
  // slots within each block.
  template <class Visit>
  void for_granules(Range window_rows, Range window_columns, const Visit& visit) const;

  // Cuts a matrix into the given blocks. Blocks of fewer than `least` words are joined, rows first.
  // A granule has about `granule_bytes` bytes and is as wide as its block where possible. Throws
  // (both): ShapeMismatch for a matrix without words; CountOverflow if the number of bytes is too
  // large.
  static StoreLayout for_blocks(Index rows, Index cols, Window block, Index granule_bytes,
                                Index least = kSector / Index{sizeof(float)});
  // Cuts a matrix into blocks of whole rows, one granule each.
  static StoreLayout row_major(Index rows, Index cols, Index granule_bytes);
};

template <class Visit>
void StoreLayout::for_granules(Range window_rows, Range window_columns, const Visit& visit) const {
  const Index all_columns = columns.all_pieces();
  // Visits blocks row by row, and the pieces of each block row by row.
  for (Index i = window_rows.begin; i < window_rows.end;) {
    const Index I = rows.at(i).block;
    const Index rows_end = std::min(window_rows.end, (I + 1) * rows.block);
    for (Index j = window_columns.begin; j < window_columns.end;) {
      const Index J = columns.at(j).block;
      const Index columns_end = std::min(window_columns.end, (J + 1) * columns.block);
      const Index first =
          I * rows.pieces() * all_columns + J * columns.pieces() * rows.pieces_of(I);
      for (Index r = i; r < rows_end;) {
        const Cut::Piece of_rows = rows.at(r);
        for (Index c = j; c < columns_end;) {
          const Cut::Piece of_columns = columns.at(c);
          visit(Granule{first + of_rows.within * columns.pieces_of(J) + of_columns.within,
                        of_rows.range, of_columns.range});
          c = of_columns.range.end;
        }
        r = of_rows.range.end;
      }
      j = columns_end;
    }
    i = rows_end;
  }
}

}  // namespace redblue
