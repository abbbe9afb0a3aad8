#pragma once
// The storage of a slow matrix. A backing reads and writes windows of rows and columns and knows
// neither tiles nor counts. A new kind of store is a new backing; kernels stay as they are.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memsim/layout.hpp"
#include "memsim/range.hpp"

namespace redblue {

// A read in flight while its caller computes.
class Fetch {
 public:
  Fetch() = default;
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;
  virtual ~Fetch() = default;  // Requires: the read has ended.

  virtual void wait() noexcept = 0;
  // Waits for the end. Throws: what the read threw.
  virtual void finish() = 0;
  // Whether it is known that finish() need not wait.
  [[nodiscard]] virtual bool is_over() { return false; }
};

// A row of words in the store: a number that no other backing of this process has, now or later,
// and a row of it.
struct StoredRow {
  std::uint64_t backing;
  Index row;
};

class Backing {
 public:
  Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  // The words of the window, row by row. Requires: a window inside the matrix, and a span of
  // exactly its words.
  virtual void read(Range rows, Range columns, std::span<float> to) const = 0;
  virtual void write(Range rows, Range columns, std::span<const float> from) = 0;

  // The same window with its words in the order of a tile (memsim/layout.hpp) that is the window or
  // its transpose. The default moves a panel at a time; transposed, a row of a panel.
  virtual void read_tile(Range rows, Range columns, Orientation orientation,
                         std::span<float> to) const;
  virtual void write_tile(Range rows, Range columns, Orientation orientation,
                          std::span<const float> from);
  // The words of the window that are in the store, all of which a transfer moves; and those of one
  // row.
  [[nodiscard]] virtual Index words(Range rows, Range columns) const {
    return rows.size() * columns.size();
  }
  [[nodiscard]] virtual std::vector<Range> stored(Index /* row */, Range columns) const {
    return {columns};
  }

  // Where a row's words are: those of a backing that shows rows of another are there.
  [[nodiscard]] virtual StoredRow stored_row(Index row) const { return {number_, row}; }

  // Begins a read_tile(). Requires: `to` is valid until the fetch has ended. Null if the backing
  // gains nothing by it; the caller then calls read_tile().
  [[nodiscard]] virtual std::unique_ptr<Fetch> fetch_tile(Range /* rows */, Range /* columns */,
                                                          Orientation /* orientation */,
                                                          std::span<float> /* to */) const {
    return nullptr;
  }

 private:
  std::uint64_t number_;
};

// A caller's row-major buffer, used without a copy. The buffer must outlive the backing.
class BorrowedBacking : public Backing {
 public:
  BorrowedBacking(float* words, Index columns)
      : readable_(words), writable_(words), columns_(columns) {}
  BorrowedBacking(const float* words, Index columns) : readable_(words), columns_(columns) {}
  void read(Range rows, Range columns, std::span<float> to) const override;
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override;
  // Throw (both): std::logic_error for a buffer that was lent for reading only.
  void write(Range rows, Range columns, std::span<const float> from) override;
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override;

 private:
  [[nodiscard]] float* writable() const;

  const float* readable_;
  float* writable_ = nullptr;
  Index columns_;
};

// What words are until they are written: NaN, so that a read of them shows; or whatever costs no
// time, on pages that are not there before.
enum class Unwritten { nan, any };

// Words in main memory.
class RamBacking : public BorrowedBacking {
 public:
  RamBacking(Index rows, Index columns, Unwritten unwritten = Unwritten::nan);

 private:
  struct Freed {
    void operator()(float* words) const;
  };
  using Memory = std::unique_ptr<float[], Freed>;
  static Memory memory(Index rows, Index columns, Unwritten unwritten);
  RamBacking(Memory words, Index columns)
      : BorrowedBacking(words.get(), columns), words_(std::move(words)) {}

  Memory words_;
};

// Some rows of another backing, one range after the other, in any order. A tile of several ranges
// is moved some whole rows at a time, and not fetched ahead.
class SelectedRows : public Backing {
 public:
  SelectedRows(Backing& whole, std::vector<Range> rows);
  SelectedRows(const Backing& whole, std::vector<Range> rows);
  [[nodiscard]] Index rows() const { return firsts_.back(); }

  void read(Range rows, Range columns, std::span<float> to) const override;
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override;
  // Throw (both): std::logic_error where the rows are for reading only.
  void write(Range rows, Range columns, std::span<const float> from) override;
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override;
  [[nodiscard]] std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns,
                                                  Orientation orientation,
                                                  std::span<float> to) const override;
  [[nodiscard]] StoredRow stored_row(Index row) const override;

 private:
  [[nodiscard]] std::size_t range_of(Index row) const;
  // Calls visit(rows of the whole, the first of them here) for each range that these rows touch.
  template <class Visit>
  void each_part(Range rows, const Visit& visit) const;
  // Calls visit(rows of the whole, rows of the tile, room for their words) for a few rows at a
  // time.
  template <class Visit>
  void each_few(Range rows, Range columns, const Visit& visit) const;
  // The rows in the whole where all are of one range; else an empty range.
  [[nodiscard]] Range in_one(Range rows) const;
  [[nodiscard]] Backing& writable() const;

  const Backing& readable_;
  Backing* writable_ = nullptr;
  std::vector<Range> ranges_;
  std::vector<Index> firsts_;  // the first row of each range here, and their number
};

// Some rows of a matrix, which lie one below the other in another backing, from its row `first` on,
// in their order; the others are nowhere. Requires, of what is read or written: rows that are
// there, next to each other.
class SpreadRows : public Backing {
 public:
  SpreadRows(Backing& lying, std::vector<Range> rows, Index first = 0);
  void read(Range rows, Range columns, std::span<float> to) const override;
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override;
  void write(Range rows, Range columns, std::span<const float> from) override;
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override;
  [[nodiscard]] std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns,
                                                  Orientation orientation,
                                                  std::span<float> to) const override;

 private:
  [[nodiscard]] Range there(Range rows) const;

  Backing& lying_;
  std::vector<Range> rows_;
  std::vector<Index> firsts_;  // the first row of each range where they lie
};

}  // namespace redblue
