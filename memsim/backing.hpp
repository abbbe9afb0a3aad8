#pragma once
// Where the words of a slow matrix live. A backing is asked for windows of rows and columns
// and knows nothing of tiles or counts; a new kind of store is a new backing, and no kernel
// changes.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memsim/layout.hpp"
#include "memsim/range.hpp"

namespace redblue {

// A read that goes on while its caller computes.
class Fetch {
 public:
  Fetch() = default;
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;
  virtual ~Fetch() = default;  // when it has ended

  virtual void wait() noexcept = 0;
  // Waits. Throws: what the read threw.
  virtual void finish() = 0;
};

class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;

  // The words of the window, row after row. Requires: a window inside the matrix, and
  // exactly its number of words.
  virtual void read(Range rows, Range columns, std::span<float> to) const = 0;
  virtual void write(Range rows, Range columns, std::span<const float> from) = 0;

  // The same window with its words in the order of a tile (memsim/layout.hpp) that is the
  // window or its transpose. Unless a backing knows better: a panel, or a line, at a time.
  virtual void read_tile(Range rows, Range columns, Orientation orientation,
                         std::span<float> to) const;
  virtual void write_tile(Range rows, Range columns, Orientation orientation,
                          std::span<const float> from);

  // Begins a read_tile(), for which `to` stays where it is. Null where a backing gains nothing by
  // it: then it is read when it is needed.
  [[nodiscard]] virtual std::unique_ptr<Fetch> fetch_tile(Range /* rows */, Range /* columns */,
                                                          Orientation /* orientation */,
                                                          std::span<float> /* to */) const {
    return nullptr;
  }
};

// A caller's own row-major buffer, without a copy; it must outlive the backing.
class BorrowedBacking : public Backing {
 public:
  BorrowedBacking(float* words, Index columns)
      : readable_(words), writable_(words), columns_(columns) {}
  BorrowedBacking(const float* words, Index columns) : readable_(words), columns_(columns) {}
  void read(Range rows, Range columns, std::span<float> to) const override;
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override;
  // Throw (both): std::logic_error when the buffer was lent for reading only.
  void write(Range rows, Range columns, std::span<const float> from) override;
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override;

 private:
  [[nodiscard]] float* writable() const;

  const float* readable_;
  float* writable_ = nullptr;
  Index columns_;
};

// Words in main memory, NaN until they are written: reading what nobody wrote shows.
class RamBacking : public BorrowedBacking {
 public:
  RamBacking(Index rows, Index columns);

 private:
  RamBacking(std::vector<float> words, Index columns)
      : BorrowedBacking(words.data(), columns), words_(std::move(words)) {}

  std::vector<float> words_;
};

}  // namespace redblue
