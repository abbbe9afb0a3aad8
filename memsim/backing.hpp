#pragma once
// The storage of a slow matrix. A backing reads and writes windows of rows and columns. It knows
// neither tiles nor counts. A new kind of store is a new backing, and kernels do not change.

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
  // Waits until the read has ended, and rethrows its exception if it failed.
  virtual void finish() = 0;
  // True if finish() is known to return without waiting.
  [[nodiscard]] virtual bool is_over() { return false; }
};

// A row of words in the store: the backing's number, unique and never reused in this process, and
// the row there.
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

  // Moves the words of the window, row by row. Requires: the window lies inside the matrix, and the
  // span has exactly its words.
  virtual void read(Range rows, Range columns, std::span<float> to) const = 0;
  virtual void write(Range rows, Range columns, std::span<const float> from) = 0;

  // Moves the same window with its words in the order of a tile (memsim/layout.hpp). The tile is
  // the window or its transpose. By default each call to read() or write() moves one panel, or one
  // row of a panel if transposed.
  virtual void read_tile(Range rows, Range columns, Orientation orientation,
                         std::span<float> to) const;
  virtual void write_tile(Range rows, Range columns, Orientation orientation,
                          std::span<const float> from);
  // words() returns how many words of the window the store holds. A transfer moves all of them.
  // stored() returns the columns of one row that the store holds.
  [[nodiscard]] virtual Index words(Range rows, Range columns) const {
    return rows.size() * columns.size();
  }
  [[nodiscard]] virtual std::vector<Range> stored(Index /* row */, Range columns) const {
    return {columns};
  }

  // Returns where the row is stored. A backing that shows rows of another backing returns its row
  // there.
  [[nodiscard]] virtual StoredRow stored_row(Index row) const { return {number_, row}; }

  // Begins a read_tile(). Requires: `to` is valid until the fetch has ended. Returns null if the
  // backing cannot read in the background; the caller then calls read_tile().
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

// The value of words before their first write. `nan` makes a read of them visible. `any` leaves
// them as they are, perhaps with the words of an earlier matrix, so that creating the matrix takes
// no time.
enum class Unwritten { nan, any };

// Words in main memory.
class RamBacking : public BorrowedBacking {
 public:
  // Throws: std::bad_alloc.
  RamBacking(Index rows, Index columns, Unwritten unwritten = Unwritten::nan);

 private:
  using Memory = std::shared_ptr<float>;
  static Memory memory(Index rows, Index columns, Unwritten unwritten);
  RamBacking(Memory words, Index columns)
      : BorrowedBacking(words.get(), columns), words_(std::move(words)) {}

  Memory words_;
};

// Row ranges of another backing, concatenated in any order. A tile that spans several ranges is
// moved a few whole rows per call, and is not fetched ahead.
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
  // Calls visit(rows of the whole, index here of the first of them) for each range that `rows`
  // touches.
  template <class Visit>
  void each_part(Range rows, const Visit& visit) const;
  // Calls visit(rows of the whole, rows of the tile, buffer for their words) for at most kPanel
  // rows per call.
  template <class Visit>
  void each_few(Range rows, Range columns, const Visit& visit) const;
  // Returns the rows' place in the whole if one range holds all of them, else an empty range.
  [[nodiscard]] Range in_one(Range rows) const;
  [[nodiscard]] Backing& writable() const;

  const Backing& readable_;
  Backing* writable_ = nullptr;
  std::vector<Range> ranges_;
  std::vector<Index> firsts_;  // the first row here of each range; last, the number of rows
};

// A matrix with only some of its rows stored. The stored rows lie one below the other in another
// backing, in order, from its row `first` on. Requires: each read or write is for stored rows of
// one range.
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
  std::vector<Index> firsts_;  // the first row in lying_ of each range
};

}  // namespace redblue
