#include "memsim/host_access.hpp"

namespace redblue {
namespace {

void check_size(std::size_t words, Range rows, Index cols) {
  require(static_cast<Index>(words) == rows.size() * cols,
          "the buffer has as many words as the rows of the matrix");
}

}  // namespace

void HostAccess::put(SlowMatrix& matrix, Range rows, std::span<const float> words) {
  matrix.check(rows, {0, matrix.cols()});
  check_size(words.size(), rows, matrix.cols());
  matrix.backing_->write(rows, {0, matrix.cols()}, words);
}

void HostAccess::get(const SlowMatrix& matrix, Range rows, std::span<float> words) {
  matrix.check(rows, {0, matrix.cols()});
  check_size(words.size(), rows, matrix.cols());
  matrix.backing_->read(rows, {0, matrix.cols()}, words);
}

}  // namespace redblue
