#include "memsim/backing.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

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

}  // namespace

RamBacking::RamBacking(Index rows, Index columns) : columns_(columns) {
  require(rows > 0 && columns > 0, "a matrix has at least one row and one column");
  words_.assign(static_cast<std::size_t>((Words(rows) * columns).value()),
                std::numeric_limits<float>::quiet_NaN());
}

void RamBacking::read(Range rows, Range columns, std::span<float> to) const {
  gather(words_.data(), columns_, rows, columns, to.data());
}

void RamBacking::write(Range rows, Range columns, std::span<const float> from) {
  scatter(from.data(), words_.data(), columns_, rows, columns);
}

void BorrowedBacking::read(Range rows, Range columns, std::span<float> to) const {
  gather(readable_, columns_, rows, columns, to.data());
}

void BorrowedBacking::write(Range rows, Range columns, std::span<const float> from) {
  if (writable_ == nullptr) {
    throw std::logic_error("a write to a buffer that was lent for reading only");
  }
  scatter(from.data(), writable_, columns_, rows, columns);
}

}  // namespace redblue
