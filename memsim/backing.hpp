#pragma once
// Where the words of a slow matrix live. A backing is asked for windows of rows and columns
// and knows nothing of tiles or counts; a new kind of store is a new backing, and no kernel
// changes.

#include <memory>
#include <span>
#include <vector>

#include "memsim/range.hpp"

namespace redblue {

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
};

// Words in main memory, NaN until they are written: reading what nobody wrote shows.
class RamBacking : public Backing {
 public:
  RamBacking(Index rows, Index columns);
  void read(Range rows, Range columns, std::span<float> to) const override;
  void write(Range rows, Range columns, std::span<const float> from) override;

 private:
  Index columns_;
  std::vector<float> words_;
};

// A caller's own row-major buffer, without a copy; it must outlive the backing.
class BorrowedBacking : public Backing {
 public:
  BorrowedBacking(float* words, Index columns)
      : readable_(words), writable_(words), columns_(columns) {}
  BorrowedBacking(const float* words, Index columns) : readable_(words), columns_(columns) {}
  void read(Range rows, Range columns, std::span<float> to) const override;
  // Throws: std::logic_error when the buffer was lent for reading only.
  void write(Range rows, Range columns, std::span<const float> from) override;

 private:
  const float* readable_;
  float* writable_ = nullptr;
  Index columns_;
};

}  // namespace redblue
