#include "memsim/partial.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace redblue {

void KeptWords::add_row(const std::vector<Range>& columns) {
  for (const Range range : columns) {
    kept_.push_back({range, words_});
    words_ += range.size();
  }
  first_of_.push_back(static_cast<Index>(kept_.size()));
}

std::vector<KeptWords::Kept>::const_iterator KeptWords::first_from(Index row, Index column) const {
  const auto which = static_cast<std::size_t>(row);
  return std::upper_bound(kept_.begin() + first_of_[which], kept_.begin() + first_of_[which + 1],
                          column, [](Index at, const Kept& kept) { return at < kept.columns.end; });
}

Index KeptWords::words(Range rows, Range columns) const {
  Index sum = 0;
  for (Index row = rows.begin; row < rows.end; ++row) {
    each_range(row, columns, [&](Range met, Index) { sum += met.size(); });
  }
  return sum;
}

namespace {

// Moves tiles through a row-major buffer.
class ByRows : public Backing {
 public:
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    std::vector<float> by_rows(to.size());
    read(rows, columns, by_rows);
    BorrowedBacking(by_rows.data(), columns.size())
        .read_tile({0, rows.size()}, {0, columns.size()}, orientation, to);
  }
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override {
    std::vector<float> by_rows(from.size());
    BorrowedBacking(by_rows.data(), columns.size())
        .write_tile({0, rows.size()}, {0, columns.size()}, orientation, from);
    write(rows, columns, by_rows);
  }
};

class PartialBacking final : public ByRows {
 public:
  PartialBacking(std::unique_ptr<Backing> words, KeptWords kept)
      : words_(std::move(words)), kept_(std::move(kept)) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    std::ranges::fill(to, 0.0F);
    each_piece(rows, columns, [&](Range words, std::size_t at, std::size_t count) {
      words_->read({0, 1}, words, to.subspan(at, count));
    });
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    each_piece(rows, columns, [&](Range words, std::size_t at, std::size_t count) {
      words_->write({0, 1}, words, from.subspan(at, count));
    });
  }
  [[nodiscard]] Index words(Range rows, Range columns) const override {
    return kept_.words(rows, columns);
  }
  [[nodiscard]] std::vector<Range> stored(Index row, Range columns) const override {
    std::vector<Range> ranges;
    kept_.each_range(row, columns, [&](Range met, Index) { ranges.push_back(met); });
    return ranges;
  }

 private:
  // Calls visit(range of kept words, index of the first in the window) for each piece of the
  // window.
  template <class Visit>
  void each_piece(Range rows, Range columns, const Visit& visit) const {
    for (Index row = rows.begin; row < rows.end; ++row) {
      kept_.each_range(row, columns, [&](Range met, Index before) {
        visit(Range{before, before + met.size()},
              static_cast<std::size_t>((row - rows.begin) * columns.size() + met.begin -
                                       columns.begin),
              static_cast<std::size_t>(met.size()));
      });
    }
  }

  std::unique_ptr<Backing> words_;
  KeptWords kept_;
};

class OnlyRows final : public ByRows {
 public:
  OnlyRows(const Backing& whole, Backing* writable, std::vector<Range> rows, float others)
      : whole_(whole), writable_(writable), rows_(std::move(rows)), others_(others) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    std::ranges::fill(to, others_);
    each_part(rows, [&](Range part) { whole_.read(part, columns, of(part, rows, columns, to)); });
  }
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    if (has(rows)) {
      whole_.read_tile(rows, columns, orientation, to);
    } else {
      ByRows::read_tile(rows, columns, orientation, to);
    }
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    if (writable_ == nullptr) {
      throw std::logic_error("these rows are for reading only");
    }
    each_part(rows,
              [&](Range part) { writable_->write(part, columns, of(part, rows, columns, from)); });
  }
  [[nodiscard]] Index words(Range rows, Range columns) const override {
    Index sum = 0;
    each_part(rows, [&](Range part) { sum += whole_.words(part, columns); });
    return sum;
  }
  [[nodiscard]] std::vector<Range> stored(Index row, Range columns) const override {
    std::vector<Range> ranges;
    each_part({row, row + 1}, [&](Range) { ranges = whole_.stored(row, columns); });
    return ranges;
  }
  [[nodiscard]] StoredRow stored_row(Index row) const override { return whole_.stored_row(row); }

 private:
  // Calls visit(rows) for each stored range that `rows` touches.
  template <class Visit>
  void each_part(Range rows, const Visit& visit) const {
    for (auto at = std::ranges::upper_bound(rows_, rows.begin, {}, &Range::end);
         at != rows_.end() && at->begin < rows.end; ++at) {
      visit(common(*at, rows));
    }
  }
  [[nodiscard]] bool has(Range rows) const {
    bool all = false;
    each_part(rows, [&](Range part) { all = part == rows; });
    return all;
  }
  // Returns the words of the rows `part` within the words of a window.
  template <class Word>
  static std::span<Word> of(Range part, Range rows, Range columns, std::span<Word> words) {
    return words.subspan(static_cast<std::size_t>((part.begin - rows.begin) * columns.size()),
                         static_cast<std::size_t>(part.size() * columns.size()));
  }

  const Backing& whole_;
  Backing* writable_;
  std::vector<Range> rows_;
  float others_;
};

}  // namespace

SlowMatrix partial(std::string name, SlowMatrix words, KeptWords kept) {
  require(words.rows() == 1 && words.cols() == kept.words(), "a word for each that is kept");
  const Index rows = kept.rows();
  const Index columns = kept.columns();
  return {std::move(name), rows, columns,
          std::make_unique<PartialBacking>(std::move(words.backing_), std::move(kept))};
}

SlowMatrix only_rows(SlowMatrix& whole, std::vector<Range> rows) {
  Backing& words = *whole.backing_;
  return SlowMatrix(whole.name_, whole.rows_, whole.cols_,
                    std::make_unique<OnlyRows>(words, &words, std::move(rows), 0.0F))
      .holding(whole.holds_);
}

SlowMatrix only_rows(const SlowMatrix& whole, std::vector<Range> rows, float others) {
  return SlowMatrix(whole.name_, whole.rows_, whole.cols_,
                    std::make_unique<OnlyRows>(*whole.backing_, nullptr, std::move(rows), others))
      .holding(whole.holds_);
}

}  // namespace redblue
