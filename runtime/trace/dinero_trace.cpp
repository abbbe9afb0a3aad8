#include "runtime/trace/dinero_trace.hpp"

#include <algorithm>
#include <charconv>

namespace redblue {

DineroTrace::DineroTrace(Machine& machine, TextFile& file, Index most)
    : Follower(machine), file_(file), most_(most) {}

void DineroTrace::follow(const Event& event) {
  if (event.moved > 0) {
    all_ += event.moved;
    put(*event.block, event.moved / event.block->words(),
        event.kind == Event::Kind::read ? '0' : '1');
  }
}

void DineroTrace::put(const ConstBlock& block, Index weight, char label) {
  const Index base = address_of(block.matrix(), weight);
  for (Index row = block.row_range().begin; row < block.row_range().end; ++row) {
    const Index begin = base + row * block.matrix().cols() * weight * kWord;
    for (const Range columns : block.stored(row)) {
      for (Index word = columns.begin * weight; word < columns.end * weight; ++word) {
        if (written_ == most_) {
          return;
        }
        char line[2 + 16 + 1] = {label, ' '};
        char* const end = std::to_chars(line + 2, std::end(line) - 1, begin + word * kWord, 16).ptr;
        *end = '\n';
        file_.append({line, end + 1});
        ++written_;
      }
    }
  }
}

Index DineroTrace::address_of(const SlowMatrix& matrix, Index weight) {
  const auto known = std::ranges::find_if(matrices_, [&](const Placed& placed) {
    return placed.name == matrix.name() && placed.rows == matrix.rows() &&
           placed.cols == matrix.cols() && placed.weight == weight;
  });
  if (known != matrices_.end()) {
    return known->address;
  }
  const Index address = next_;
  matrices_.push_back({matrix.name(), matrix.rows(), matrix.cols(), weight, address});
  next_ += ceil_div(matrix.rows() * matrix.cols() * weight * kWord, kPage) * kPage;
  return address;
}

}  // namespace redblue
