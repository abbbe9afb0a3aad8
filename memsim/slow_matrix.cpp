#include "memsim/slow_matrix.hpp"

#include <utility>

namespace redblue {
namespace {

std::string text(Range range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

bool inside(Range range, Index extent) {
  return 0 <= range.begin && range.begin <= range.end && range.end <= extent;
}

}  // namespace

Holds ConstBlock::holds() const {
  return holds_.value_or(matrix_->holds());
}

Index ConstBlock::words() const {
  return matrix_->backing_->words(rows_, columns_);
}

std::vector<Range> ConstBlock::stored(Index row) const {
  return matrix_->backing_->stored(row, columns_);
}

StoredRow ConstBlock::stored_row(Index row) const {
  return matrix_->backing_->stored_row(row);
}

Block::operator ConstBlock() const {
  ConstBlock same(*matrix_, rows_, columns_);
  same.holds_ = holds_;
  return same;
}

ConstBlock BlockSequence::operator[](Index k) const {
  return along_ == Along::rows ? matrix_->row_block(pieces_[k]) : matrix_->block(rows_, pieces_[k]);
}

SlowMatrix::SlowMatrix(std::string name, Index rows, Index cols)
    : SlowMatrix(std::move(name), rows, cols, std::make_unique<RamBacking>(rows, cols)) {}

SlowMatrix::SlowMatrix(std::string name, Index rows, Index cols, std::unique_ptr<Backing> backing)
    : name_(std::move(name)), rows_(rows), cols_(cols), backing_(std::move(backing)) {
  require(rows > 0 && cols > 0, "a matrix has at least one row and one column");
  require(backing_ != nullptr, "a matrix has a backing");
}

ConstBlock SlowMatrix::block(Range rows, Range columns) const {
  check(rows, columns);
  return {*this, rows, columns};
}

Block SlowMatrix::block(Range rows, Range columns) {
  check(rows, columns);
  return {*this, rows, columns};
}

BlockSequence SlowMatrix::row_blocks(Index step) const {
  return row_blocks(Pieces({{0, rows_}}, step));
}

BlockSequence SlowMatrix::row_blocks(const Pieces& rows) const {
  return {*this, {0, rows_}, rows, BlockSequence::Along::rows};
}

BlockSequence SlowMatrix::column_blocks(Range rows, Index step) const {
  return column_blocks(rows, Pieces({{0, cols_}}, step));
}

BlockSequence SlowMatrix::column_blocks(Range rows, const Pieces& columns) const {
  check(rows, {0, cols_});
  return {*this, rows, columns, BlockSequence::Along::columns};
}

void SlowMatrix::check(Range rows, Range columns) const {
  if (!inside(rows, rows_) || !inside(columns, cols_)) {
    throw ShapeMismatch("the block " + text(rows) + " x " + text(columns) + " leaves " + name_ +
                        ", which is " + std::to_string(rows_) + " x " + std::to_string(cols_));
  }
}

SlowMatrix selected_rows(SlowMatrix& whole, std::vector<Range> rows) {
  auto backing = std::make_unique<SelectedRows>(*whole.backing_, std::move(rows));
  const Index selected = backing->rows();
  return SlowMatrix(whole.name_, selected, whole.cols_, std::move(backing)).holding(whole.holds_);
}

SlowMatrix selected_rows(const SlowMatrix& whole, std::vector<Range> rows) {
  auto backing = std::make_unique<SelectedRows>(std::as_const(*whole.backing_), std::move(rows));
  const Index selected = backing->rows();
  return SlowMatrix(whole.name_, selected, whole.cols_, std::move(backing)).holding(whole.holds_);
}

SlowMatrix borrow(std::string name, float* words, Index rows, Index cols) {
  return {std::move(name), rows, cols, std::make_unique<BorrowedBacking>(words, cols)};
}

const SlowMatrix borrow(std::string name, const float* words, Index rows, Index cols) {
  return {std::move(name), rows, cols, std::make_unique<BorrowedBacking>(words, cols)};
}

}  // namespace redblue
