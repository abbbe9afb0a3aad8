#pragma once
// A matrix in slow memory. It gives access to blocks only, never to a pointer or an element. A
// block is accepted only by Machine::read and Machine::write, which count. (Host programs fill and
// fetch matrices through memsim/host_access.hpp, which kernels must not include.)
//
// A block refers to its matrix, which must outlive it and must not be moved. Several threads may
// read at the same time if the backing allows it.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memsim/backing.hpp"
#include "memsim/holds.hpp"
#include "memsim/range.hpp"

namespace redblue {

class KeptWords;
class SlowMatrix;

// A window of a slow matrix that may be read.
class ConstBlock {
 public:
  [[nodiscard]] const SlowMatrix& matrix() const { return *matrix_; }
  // Returns the kind of the words moved: the matrix's kind, unless holding() changed it. Unfinished
  // partial results, for example, move as sums, whatever they become.
  [[nodiscard]] Holds holds() const;
  [[nodiscard]] ConstBlock holding(Holds holds) const {
    ConstBlock same = *this;
    same.holds_ = holds;
    return same;
  }
  [[nodiscard]] Range row_range() const { return rows_; }
  [[nodiscard]] Range column_range() const { return columns_; }
  [[nodiscard]] Index rows() const { return rows_.size(); }
  [[nodiscard]] Index cols() const { return columns_.size(); }
  // words() returns how many words of the block are stored: rows() * cols(), unless the matrix
  // stores only some words (memsim/partial.hpp). stored() returns the stored columns of one row.
  [[nodiscard]] Index words() const;
  [[nodiscard]] std::vector<Range> stored(Index row) const;
  // Returns where a row of the matrix is stored.
  [[nodiscard]] StoredRow stored_row(Index row) const;

 private:
  friend class SlowMatrix;
  friend class Block;
  ConstBlock(const SlowMatrix& matrix, Range rows, Range columns)
      : matrix_(&matrix), rows_(rows), columns_(columns) {}

  const SlowMatrix* matrix_;
  Range rows_, columns_;
  std::optional<Holds> holds_ = std::nullopt;
};

// A window that may also be written. A const matrix gives no such window.
class Block {
 public:
  operator ConstBlock()
      const;  // NOLINT(google-explicit-constructor): a writable block is readable too
  [[nodiscard]] Block holding(Holds holds) const {
    Block same = *this;
    same.holds_ = holds;
    return same;
  }

 private:
  friend class Machine;
  friend class SlowMatrix;
  Block(SlowMatrix& matrix, Range rows, Range columns)
      : matrix_(&matrix), rows_(rows), columns_(columns) {}

  SlowMatrix* matrix_;
  Range rows_, columns_;
  std::optional<Holds> holds_ = std::nullopt;
};

// The transpose of the block, for reads and writes. It moves the same words, laid out transposed.
inline Transposed<ConstBlock> transposed(const ConstBlock& block) {
  return {block};
}
inline Transposed<Block> transposed(const Block& block) {
  return {block};
}

// Blocks of a matrix, one after the other, for Machine::stream.
class BlockSequence {
 public:
  [[nodiscard]] Index size() const { return pieces_.size(); }
  [[nodiscard]] ConstBlock operator[](Index k) const;

 private:
  friend class SlowMatrix;
  enum class Along { rows, columns };
  BlockSequence(const SlowMatrix& matrix, Range rows, Pieces pieces, Along along)
      : matrix_(&matrix), rows_(rows), pieces_(std::move(pieces)), along_(along) {}

  const SlowMatrix* matrix_;
  Range rows_;
  Pieces pieces_;
  Along along_;
};

// The same blocks, each as its transpose.
inline Transposed<BlockSequence> transposed(const BlockSequence& blocks) {
  return {blocks};
}

class [[nodiscard]] SlowMatrix {
 public:
  // Fresh words in main memory, NaN until written.
  SlowMatrix(std::string name, Index rows, Index cols);
  // Requires: the backing holds rows x cols words. Throw (both): ShapeMismatch for an extent below
  // 1.
  SlowMatrix(std::string name, Index rows, Index cols, std::unique_ptr<Backing> backing);
  SlowMatrix(SlowMatrix&&) noexcept = default;
  SlowMatrix& operator=(SlowMatrix&&) noexcept = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  [[nodiscard]] Holds holds() const { return holds_; }
  // Sets the kind of the words, which is `operands` by default.
  [[nodiscard]] SlowMatrix&& holding(Holds holds) && {
    holds_ = holds;
    return std::move(*this);
  }

  // Throw (all): ShapeMismatch if a range leaves the matrix.
  [[nodiscard]] ConstBlock block(Range rows, Range columns) const;
  [[nodiscard]] Block block(Range rows, Range columns);
  [[nodiscard]] ConstBlock row_block(Range rows) const { return block(rows, {0, cols_}); }
  [[nodiscard]] Block row_block(Range rows) { return block(rows, {0, cols_}); }
  [[nodiscard]] ConstBlock whole() const { return row_block({0, rows_}); }
  [[nodiscard]] Block whole() { return row_block({0, rows_}); }

  // Whole rows in blocks of `step`, or in the given pieces. Likewise for columns of the given rows.
  [[nodiscard]] BlockSequence row_blocks(Index step) const;
  [[nodiscard]] BlockSequence row_blocks(const Pieces& rows) const;
  [[nodiscard]] BlockSequence column_blocks(Range rows, Index step) const;
  [[nodiscard]] BlockSequence column_blocks(Range rows, const Pieces& columns) const;

 private:
  friend class Machine;
  friend class HostAccess;
  friend class ConstBlock;

  friend SlowMatrix partial(std::string name, SlowMatrix words, KeptWords kept);
  friend SlowMatrix only_rows(SlowMatrix& whole, std::vector<Range> rows);
  friend SlowMatrix only_rows(const SlowMatrix& whole, std::vector<Range> rows, float others);
  friend SlowMatrix selected_rows(SlowMatrix& whole, std::vector<Range> rows);
  friend SlowMatrix selected_rows(const SlowMatrix& whole, std::vector<Range> rows);
  void check(Range rows, Range columns) const;

  std::string name_;
  Index rows_, cols_;
  Holds holds_ = Holds::operands;
  std::unique_ptr<Backing> backing_;
};

// Row ranges of a matrix, concatenated in any order, as a matrix of the same name. It refers to the
// words of the whole, which must outlive it and must not be moved. Requires: disjoint ranges inside
// the whole.
SlowMatrix selected_rows(SlowMatrix& whole, std::vector<Range> rows);
// For reading only. A write throws std::logic_error.
SlowMatrix selected_rows(const SlowMatrix& whole, std::vector<Range> rows);

// A caller's row-major buffer of rows * cols words as a slow matrix, without a copy. The buffer
// must outlive the matrix.
SlowMatrix borrow(std::string name, float* words, Index rows, Index cols);
const SlowMatrix borrow(std::string name, const float* words, Index rows, Index cols);

}  // namespace redblue
