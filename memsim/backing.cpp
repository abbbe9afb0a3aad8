#include "memsim/backing.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "memsim/mapping.hpp"
#include "memsim/sanitized.hpp"

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

// Calls copy(words). For a whole row of a panel, the number is a compile-time constant.
template <class Copy>
void for_line(Index words, const Copy& copy) {
  if (words == kPanel) {
    copy(std::integral_constant<Index, kPanel>());
  } else {
    copy(words);
  }
}

// Processors prefetch by themselves, but not into the next page. This prefetches two pages ahead,
// into the second cache, since the first is too small. The address is computed as a number because,
// unlike a pointer, a number may lie behind the matrix.
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

// Visits windows. Their row-major words, concatenated, are the words of the tile.
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

// Calls visit(index in `rows`, index in the tile) for each word of some rows of a block. The words
// of `rows` are row-major.
template <class Visit>
void for_words(Index height, Index width, Range rows, Orientation orientation, const Visit& visit) {
  const bool straight = orientation == Orientation::straight;
  const Index step = straight ? 1 : width;  // from one word of a run to the next
  const auto run = [&](Index i, Index j, Index place, Index words) {
    const Index line = (i - rows.begin) * width + j;
    for (Index k = 0; k < words; ++k) {
      visit(static_cast<std::size_t>(line + k * step), static_cast<std::size_t>(place + k));
    }
  };
  if (straight) {
    for_tile_runs(height, width, rows, {0, width}, run);
  } else {
    for_transposed_runs(height, width, rows, {0, width}, run);
  }
}

}  // namespace

Backing::Backing() {
  static std::atomic<std::uint64_t> made = 0;
  number_ = made.fetch_add(1, std::memory_order_relaxed);
}

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

RamBacking::RamBacking(Index rows, Index columns, Unwritten unwritten)
    : RamBacking(memory(rows, columns, unwritten), columns) {}

RamBacking::Memory RamBacking::memory(Index rows, Index columns, Unwritten unwritten) {
  require(rows > 0 && columns > 0, "a matrix has at least one row and one column");
  const auto words = static_cast<std::size_t>((Words(rows) * columns).value());
  if (words > std::numeric_limits<std::size_t>::max() / sizeof(float)) {
    throw std::bad_alloc();
  }
  constexpr std::size_t kMapped = std::size_t{64} << 10, kHuge = std::size_t{1} << 20;  // words
  Memory memory;
  // A sanitizer checks only memory from its own allocator.
  if (words >= kMapped && !kSanitized) {
    const auto mapping =
        std::make_shared<Mapping>(words * sizeof(float), words >= kHuge, Mapping::Room::is_sure);
    memory = Memory(mapping, mapping->words());
  } else {
    memory.reset(static_cast<float*>(std::calloc(words, sizeof(float))), std::free);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
  }
  if (unwritten == Unwritten::nan) {
    std::fill_n(memory.get(), words, std::numeric_limits<float>::quiet_NaN());
  }
  return memory;
}

SelectedRows::SelectedRows(const Backing& whole, std::vector<Range> rows)
    : readable_(whole), ranges_(std::move(rows)), firsts_({0}) {
  for (const Range range : ranges_) {
    firsts_.push_back(firsts_.back() + range.size());
  }
}

SelectedRows::SelectedRows(Backing& whole, std::vector<Range> rows)
    : SelectedRows(std::as_const(whole), std::move(rows)) {
  writable_ = &whole;
}

std::size_t SelectedRows::range_of(Index row) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(firsts_, row) - firsts_.begin()) - 1;
}

template <class Visit>
void SelectedRows::each_part(Range rows, const Visit& visit) const {
  for (std::size_t k = range_of(rows.begin); rows.begin < rows.end; ++k) {
    const Index end = std::min(rows.end, firsts_[k + 1]);
    const Index shift = ranges_[k].begin - firsts_[k];
    visit(Range{rows.begin + shift, end + shift}, rows.begin);
    rows.begin = end;
  }
}

StoredRow SelectedRows::stored_row(Index row) const {
  return readable_.stored_row(in_one({row, row + 1}).begin);
}

Range SelectedRows::in_one(Range rows) const {
  const std::size_t k = range_of(rows.begin);
  const Index shift = ranges_[k].begin - firsts_[k];
  return rows.end <= firsts_[k + 1] ? Range{rows.begin + shift, rows.end + shift} : Range{};
}

Backing& SelectedRows::writable() const {
  if (writable_ == nullptr) {
    throw std::logic_error("these rows are for reading only");
  }
  return *writable_;
}

void SelectedRows::read(Range rows, Range columns, std::span<float> to) const {
  each_part(rows, [&](Range part, Index first) {
    readable_.read(part, columns,
                   to.subspan(static_cast<std::size_t>((first - rows.begin) * columns.size()),
                              static_cast<std::size_t>(part.size() * columns.size())));
  });
}

void SelectedRows::write(Range rows, Range columns, std::span<const float> from) {
  each_part(rows, [&](Range part, Index first) {
    writable().write(part, columns,
                     from.subspan(static_cast<std::size_t>((first - rows.begin) * columns.size()),
                                  static_cast<std::size_t>(part.size() * columns.size())));
  });
}

template <class Visit>
void SelectedRows::each_few(Range rows, Range columns, const Visit& visit) const {
  std::vector<float> lines(words_of({0, std::min(kPanel, rows.size())}, columns));
  each_part(rows, [&](Range part, Index first) {
    for (const Range few : blocks(part.size(), kPanel)) {
      const Index at = first - rows.begin;
      visit(part_of(part, few), Range{at + few.begin, at + few.end},
            std::span(lines).first(words_of(few, columns)));
    }
  });
}

void SelectedRows::read_tile(Range rows, Range columns, Orientation orientation,
                             std::span<float> to) const {
  if (const Range one = in_one(rows); one.size() > 0) {
    readable_.read_tile(one, columns, orientation, to);
    return;
  }
  each_few(rows, columns, [&](Range whole, Range here, std::span<float> lines) {
    readable_.read(whole, columns, lines);
    for_words(rows.size(), columns.size(), here, orientation,
              [&](std::size_t line, std::size_t tile) { to[tile] = lines[line]; });
  });
}

void SelectedRows::write_tile(Range rows, Range columns, Orientation orientation,
                              std::span<const float> from) {
  if (const Range one = in_one(rows); one.size() > 0) {
    writable().write_tile(one, columns, orientation, from);
    return;
  }
  each_few(rows, columns, [&](Range whole, Range here, std::span<float> lines) {
    for_words(rows.size(), columns.size(), here, orientation,
              [&](std::size_t line, std::size_t tile) { lines[line] = from[tile]; });
    writable().write(whole, columns, lines);
  });
}

std::unique_ptr<Fetch> SelectedRows::fetch_tile(Range rows, Range columns, Orientation orientation,
                                                std::span<float> to) const {
  const Range one = in_one(rows);
  return one.size() > 0 ? readable_.fetch_tile(one, columns, orientation, to) : nullptr;
}

SpreadRows::SpreadRows(Backing& lying, std::vector<Range> rows, Index first)
    : lying_(lying), rows_(std::move(rows)) {
  for (const Range range : rows_) {
    firsts_.push_back(first);
    first += range.size();
  }
}

Range SpreadRows::there(Range rows) const {
  const auto next = std::ranges::upper_bound(rows_, rows.begin, {}, &Range::begin);
  require(next != rows_.begin() && rows.end <= std::prev(next)->end,
          "rows of a matrix with some rows are there, next to each other");
  const Index shift =
      firsts_[static_cast<std::size_t>(next - rows_.begin() - 1)] - std::prev(next)->begin;
  return {rows.begin + shift, rows.end + shift};
}

void SpreadRows::read(Range rows, Range columns, std::span<float> to) const {
  lying_.read(there(rows), columns, to);
}

void SpreadRows::read_tile(Range rows, Range columns, Orientation orientation,
                           std::span<float> to) const {
  lying_.read_tile(there(rows), columns, orientation, to);
}

void SpreadRows::write(Range rows, Range columns, std::span<const float> from) {
  lying_.write(there(rows), columns, from);
}

void SpreadRows::write_tile(Range rows, Range columns, Orientation orientation,
                            std::span<const float> from) {
  lying_.write_tile(there(rows), columns, orientation, from);
}

std::unique_ptr<Fetch> SpreadRows::fetch_tile(Range rows, Range columns, Orientation orientation,
                                              std::span<float> to) const {
  return lying_.fetch_tile(there(rows), columns, orientation, to);
}

}  // namespace redblue
