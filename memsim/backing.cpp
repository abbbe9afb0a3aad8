#include "memsim/backing.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace redblue {
namespace {

void gather(const float* matrix, Index width, Range rows, Range columns, float* to) {
  for (Index i = rows.begin; i < rows.end; ++i, to += columns.size()) {
    std::copy_n(matrix + i * width + columns.begin, columns.size(), to);
  }
}

void scatter(const float* from, float* matrix, Index width, Range rows, Range columns) {
  for (Index i = rows.begin; i < rows.end; ++i, from += columns.size()) {
    std::copy_n(from, columns.size(), matrix + i * width + columns.begin);
  }
}

// A whole line of a panel has a size that the compiler knows.
void copy_run(const float* from, float* to, Index words) {
  if (words == kPanel) {
    std::copy_n(from, kPanel, to);
  } else {
    std::copy_n(from, words, to);
  }
}

void gather_tile(const float* matrix, Index width, Range rows, Range columns,
                 Orientation orientation, float* to) {
  const float* const from = matrix + rows.begin * width + columns.begin;
  const Range all_rows{0, rows.size()};
  const Range all_columns{0, columns.size()};
  if (orientation == Orientation::straight) {
    for_tile_runs(rows.size(), columns.size(), all_rows, all_columns,
                  [=](Index i, Index j, Index at, Index words) {
                    copy_run(from + i * width + j, to + at, words);
                  });
  } else {
    for_transposed_words(rows.size(), columns.size(), all_rows, all_columns,
                         [=](Index i, Index j, Index at) { to[at] = from[i * width + j]; });
  }
}

void scatter_tile(const float* from, float* matrix, Index width, Range rows, Range columns,
                  Orientation orientation) {
  float* const to = matrix + rows.begin * width + columns.begin;
  const Range all_rows{0, rows.size()};
  const Range all_columns{0, columns.size()};
  if (orientation == Orientation::straight) {
    for_tile_runs(rows.size(), columns.size(), all_rows, all_columns,
                  [=](Index i, Index j, Index at, Index words) {
                    copy_run(from + at, to + i * width + j, words);
                  });
  } else {
    for_transposed_words(rows.size(), columns.size(), all_rows, all_columns,
                         [=](Index i, Index j, Index at) { to[i * width + j] = from[at]; });
  }
}

// The windows whose row-major words are those of the tile, one after the other.
template <class Visit>
void for_windows(Range rows, Range columns, Orientation orientation, const Visit& visit) {
  if (orientation == Orientation::straight) {
    for (const Range J : blocks(columns.size(), kPanel)) {
      visit(rows, Range{columns.begin + J.begin, columns.begin + J.end});
    }
    return;
  }
  for (const Range I : blocks(rows.size(), kPanel)) {
    for (Index k = columns.begin; k < columns.end; ++k) {
      visit(Range{rows.begin + I.begin, rows.begin + I.end}, Range{k, k + 1});
    }
  }
}

std::size_t words_of(Range rows, Range columns) {
  return static_cast<std::size_t>(rows.size() * columns.size());
}

}  // namespace

void Backing::read_tile(Range rows, Range columns, Orientation orientation,
                        std::span<float> to) const {
  for_windows(rows, columns, orientation, [&](Range I, Range J) {
    read(I, J, to.first(words_of(I, J)));
    to = to.subspan(words_of(I, J));
  });
}

void Backing::write_tile(Range rows, Range columns, Orientation orientation,
                         std::span<const float> from) {
  for_windows(rows, columns, orientation, [&](Range I, Range J) {
    write(I, J, from.first(words_of(I, J)));
    from = from.subspan(words_of(I, J));
  });
}

void BorrowedBacking::read(Range rows, Range columns, std::span<float> to) const {
  gather(readable_, columns_, rows, columns, to.data());
}

void BorrowedBacking::write(Range rows, Range columns, std::span<const float> from) {
  scatter(from.data(), writable(), columns_, rows, columns);
}

void BorrowedBacking::read_tile(Range rows, Range columns, Orientation orientation,
                                std::span<float> to) const {
  gather_tile(readable_, columns_, rows, columns, orientation, to.data());
}

void BorrowedBacking::write_tile(Range rows, Range columns, Orientation orientation,
                                 std::span<const float> from) {
  scatter_tile(from.data(), writable(), columns_, rows, columns, orientation);
}

float* BorrowedBacking::writable() const {
  if (writable_ == nullptr) {
    throw std::logic_error("a write to a buffer that was lent for reading only");
  }
  return writable_;
}

RamBacking::RamBacking(Index rows, Index columns)
    : RamBacking((require(rows > 0 && columns > 0, "a matrix has at least one row and one column"),
                  std::vector<float>(static_cast<std::size_t>((Words(rows) * columns).value()),
                                     std::numeric_limits<float>::quiet_NaN())),
                 columns) {}

}  // namespace redblue
