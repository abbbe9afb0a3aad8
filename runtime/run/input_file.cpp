#include "runtime/run/input_file.hpp"

#include <algorithm>

#include "runtime/patterns/pattern_files.hpp"

namespace redblue {

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  if (is_sparse_file(path)) {
    entries_ = read_entries(path);
    shape_ = {entries_->pattern.rows, entries_->pattern.cols};
  } else {
    dense_.emplace(path);
    shape_ = dense_->shape();
  }
}

void InputFile::accept_minus_infinity() {
  if (dense_) {
    dense_->accept_minus_infinity();
  }
}

Index InputFile::rows() const {
  return dense_ ? dense_->rows() : entries_->pattern.stored();
}

Index InputFile::cols() const {
  return dense_ ? dense_->cols() : 1;
}

void InputFile::read_rows(Range range, std::span<float> out) const {
  if (dense_) {
    dense_->read_rows(range, out);
  } else {
    std::copy(entries_->values.begin() + range.begin, entries_->values.begin() + range.end,
              out.begin());
  }
}

}  // namespace redblue
