#include "runtime/run/input_file.hpp"

#include <algorithm>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/run/safetensors.hpp"
#include "runtime/system/npy.hpp"
#include "runtime/system/tensor_path.hpp"

namespace redblue {

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  if (is_sparse_file(path)) {
    entries_ = read_entries(path);
    shape_ = {entries_->pattern.rows, entries_->pattern.cols};
  } else {
    if (tensor_path(path)) {
      dense_ = TensorReader(path);
    } else {
      dense_ = NpyReader(path);
    }
    shape_ = dense_->shape();
  }
}

InputFile::InputFile(const LentArray<const float>& array)
    : path_("an array"), shape_(array.shape), lent_(array.words) {
  check_shape(shape_, path_);
}

void InputFile::check_lent() const {
  check_numbers(*lent_, 0, shape_, path_, minus_infinity_);
}

void InputFile::accept_minus_infinity() {
  minus_infinity_ = true;
  if (dense_) {
    dense_->accept_minus_infinity();
  }
}

Index InputFile::rows() const {
  return dense_ ? dense_->rows() : lent_ ? shape_.front() : entries_->pattern.stored();
}

Index InputFile::cols() const {
  return dense_ ? dense_->cols() : lent_ ? static_cast<Index>(lent_->size()) / shape_.front() : 1;
}

void InputFile::read_rows(Range range, std::span<float> out) const {
  if (dense_) {
    dense_->read_rows(range, out);
  } else if (lent_) {
    const auto rows = lent_->subspan(static_cast<std::size_t>(range.begin * cols()), out.size());
    std::ranges::copy(rows, out.begin());
    check_numbers(rows, range.begin, shape_, path_, minus_infinity_);
  } else {
    std::copy(entries_->values.begin() + range.begin, entries_->values.begin() + range.end,
              out.begin());
  }
}

}  // namespace redblue
