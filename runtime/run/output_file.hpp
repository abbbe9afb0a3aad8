#pragma once
// The target of a result: a .npy file, a .npz file for a sparse result, or an array in the caller's
// memory.

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "runtime/patterns/npz_writer.hpp"
#include "runtime/system/npy.hpp"

namespace redblue {

// Writes a result to an array, which must outlive this object.
class ArrayWriter {
 public:
  explicit ArrayWriter(std::span<float> room) : room_(room) {}
  // Requires: `values` fit in the rest of the array. Words that are already in place are not
  // copied.
  void append(std::span<const float> values) {
    if (values.data() != room_.data()) {
      std::ranges::copy(values, room_.begin());
    }
    room_ = room_.subspan(values.size());
  }
  void commit() {}

 private:
  std::span<float> room_;
};

class OutputFile {
 public:
  explicit OutputFile(NpyWriter writer) : writer_(std::move(writer)) {}
  explicit OutputFile(NpzWriter writer) : writer_(std::move(writer)) {}
  explicit OutputFile(ArrayWriter writer) : writer_(writer) {}

  void append(std::span<const float> values) {
    std::visit([&](auto& writer) { writer.append(values); }, writer_);
  }
  void commit() {
    std::visit([](auto& writer) { writer.commit(); }, writer_);
  }

 private:
  std::variant<NpyWriter, NpzWriter, ArrayWriter> writer_;
};

}  // namespace redblue
