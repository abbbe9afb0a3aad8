#pragma once
// A backing that passes all accesses to another one and reports the rows that are written.

#include <functional>
#include <memory>
#include <utility>

#include "memsim/backing.hpp"

namespace redblue {

class NotedRows final : public Backing {
 public:
  NotedRows(std::unique_ptr<Backing> words, std::function<void(Range rows)> note)
      : words_(std::move(words)), note_(std::move(note)) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    words_->read(rows, columns, to);
  }
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    words_->read_tile(rows, columns, orientation, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    words_->write(rows, columns, from);
    note_(rows);
  }
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override {
    words_->write_tile(rows, columns, orientation, from);
    note_(rows);
  }

 private:
  std::unique_ptr<Backing> words_;
  std::function<void(Range rows)> note_;
};

}  // namespace redblue
