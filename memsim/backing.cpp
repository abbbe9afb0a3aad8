#include "memsim/backing.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

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

// Calls copy(words). The number is a compile-time constant for a whole row of a panel.
template <class Copy>
void for_line(Index words, const Copy& copy) {
  if (words == kPanel) {
    copy(std::integral_constant<Index, kPanel>());
  } else {
    copy(words);
  }
}

// Processors prefetch by themselves, but not into the next page. This prefetches two pages ahead,
// and into the second cache, since the first has no room. The address is computed as a number:
// unlike a pointer it may lie behind the matrix.
void fetch_ahead(const float* word) {
  constexpr std::uintptr_t kAhead = 2048 * sizeof(float);
  constexpr int kForReading = 0;
  constexpr int kSecondCache = 2;
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(word) + kAhead),
                     kForReading, kSecondCache);
}

// __restrict holds: no tile shares words with a slow matrix.
void gather_tile(const float* __restrict matrix, Index width, Range rows, Range columns,
                 Orientation orientation, float* __restrict to) {
  const float* const from = matrix + rows.begin * width + columns.begin;
  const Range all_rows{0, rows.size()};
  const Range all_columns{0, columns.size()};
  if (orientation == Orientation::straight) {
    for_tile_runs(rows.size(), columns.size(), all_rows, all_columns,
                  [=](Index i, Index j, Index at, Index words) {
                    fetch_ahead(from + i * width + j);
                    for_line(words, [=](auto count) {
                      std::memcpy(to + at, from + i * width + j,
                                  static_cast<std::size_t>(count) * sizeof(float));
                    });
                  });
  } else {
    for_transposed_runs(rows.size(), columns.size(), all_rows, all_columns,
                        [=](Index i, Index j, Index at, Index words) {
                          for_line(words, [=](auto count) {
                            for (Index k = 0; k < count; ++k) {
                              to[at + k] = from[(i + k) * width + j];
                            }
                          });
                        });
  }
}

void scatter_tile(const float* __restrict from, float* __restrict matrix, Index width, Range rows,
                  Range columns, Orientation orientation) {
  float* const to = matrix + rows.begin * width + columns.begin;
  const Range all_rows{0, rows.size()};
  const Range all_columns{0, columns.size()};
  if (orientation == Orientation::straight) {
    for_tile_runs(rows.size(), columns.size(), all_rows, all_columns,
                  [=](Index i, Index j, Index at, Index words) {
                    for_line(words, [=](auto count) {
                      std::memcpy(to + i * width + j, from + at,
                                  static_cast<std::size_t>(count) * sizeof(float));
                    });
                  });
  } else {
    for_transposed_runs(rows.size(), columns.size(), all_rows, all_columns,
                        [=](Index i, Index j, Index at, Index words) {
                          for_line(words, [=](auto count) {
                            for (Index k = 0; k < count; ++k) {
                              to[(i + k) * width + j] = from[at + k];
                            }
                          });
                        });
  }
}

// Visits the windows whose row-major words, one after the other, are those of the tile.
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
