#pragma once
// A file that a result goes to: .npy, or .npz of a sparse one.

#include <span>
#include <utility>
#include <variant>

#include "runtime/patterns/npz_writer.hpp"
#include "runtime/system/npy.hpp"

namespace redblue {

class OutputFile {
 public:
  explicit OutputFile(NpyWriter writer) : writer_(std::move(writer)) {}
  explicit OutputFile(NpzWriter writer) : writer_(std::move(writer)) {}

  void append(std::span<const float> values) {
    std::visit([&](auto& writer) { writer.append(values); }, writer_);
  }
  void commit() {
    std::visit([](auto& writer) { writer.commit(); }, writer_);
  }

 private:
  std::variant<NpyWriter, NpzWriter> writer_;
};

}  // namespace redblue
