#include "kernels/mask_index.hpp"

#include <algorithm>
#include <utility>

#include "kernels/mask.hpp"

namespace redblue {
namespace {

constexpr Index kPointers = 2;  // of a block row, or a document

}  // namespace

NumbersWithin::NumbersWithin(const Ranges& ranges) : ranges_(ranges) {
  for (const Range range : ranges) {
    before_.push_back(before_.back() + range.size());
  }
}

Index NumbersWithin::below(Index at) const {
  const auto after = std::ranges::upper_bound(ranges_, at, {}, &Range::begin);
  if (after == ranges_.begin()) {
    return 0;
  }
  const Range range = *(after - 1);
  return before_[static_cast<std::size_t>(after - ranges_.begin()) - 1] + std::min(at, range.end) -
         range.begin;
}

MaskIndex MaskIndex::pattern() {
  MaskIndex index;
  index.pattern_ = true;
  return index;
}

MaskIndex MaskIndex::layout(const BlockPattern& blocks) {
  std::vector<Index> file = {blocks.rows, blocks.cols, blocks.block_rows, blocks.block_cols};
  file.insert(file.end(), blocks.offsets.begin(), blocks.offsets.end());
  file.insert(file.end(), blocks.columns.begin(), blocks.columns.end());
  List list{.file = std::make_shared<const std::vector<Index>>(std::move(file)),
            .queries = {.extent = blocks.rows},
            .keys = {.extent = blocks.cols}};
  const auto cut = [](Side& side, Index step) {
    for (const Range rows : redblue::blocks(side.extent, step)) {
      side.pieces.push_back({rows, kPointers, std::ssize(side.pieces)});
    }
  };
  cut(list.queries, blocks.block_rows);
  cut(list.keys, blocks.block_cols);
  for (std::size_t row = 0; row < list.queries.pieces.size(); ++row) {
    list.queries.pieces[row].words += blocks.offsets[row + 1] - blocks.offsets[row];
  }
  for (const Index column : blocks.columns) {
    ++list.keys.pieces[static_cast<std::size_t>(column)].words;
  }
  return MaskIndex(std::move(list));
}

MaskIndex MaskIndex::documents(const std::vector<Index>& queries, const std::vector<Index>& keys) {
  std::vector<Index> file = queries;
  file.insert(file.end(), keys.begin(), keys.end());
  List list{.file = std::make_shared<const std::vector<Index>>(std::move(file)),
            .queries = {.extent = queries.back()},
            .keys = {.extent = keys.back()}};
  const auto cut = [](Side& side, const std::vector<Index>& offsets) {
    for (std::size_t k = 0; k + 1 < offsets.size(); ++k) {
      if (offsets[k] < offsets[k + 1]) {
        side.pieces.push_back({{offsets[k], offsets[k + 1]}, kPointers, std::ssize(side.pieces)});
      }
    }
  };
  cut(list.queries, queries);
  cut(list.keys, keys);
  return MaskIndex(std::move(list));
}

MaskIndex MaskIndex::with_words(Index words) const {
  MaskIndex made = *this;
  made.index_words_ = words;
  return made;
}

MaskIndex MaskIndex::with(const MaskIndex& other) const {
  const bool is_pattern = pattern_ || other.pattern_;
  MaskIndex both = is_pattern ? pattern() : *this;
  both.of_keys_ = of_keys_ || other.of_keys_;
  both.index_words_ = std::max(index_words_, other.index_words_);
  if (is_pattern) {
    return both;
  }
  for (const auto& list : other.lists_) {
    const auto same = [&](const auto& known) {
      return known->file == list->file || *known->file == *list->file;
    };
    if (std::ranges::none_of(lists_, same)) {
      both.lists_.push_back(list);
    }
  }
  return both;
}

Wide MaskIndex::words(Range queries, Index size) const {
  Wide sum = 0;
  for (const auto& list : lists_) {
    sum += list->queries.words(queries, size);
  }
  return sum;
}

void MaskIndex::Side::link() {
  std::vector<Index> ends;
  for (Piece& piece : pieces) {
    const auto number = static_cast<std::size_t>(piece.number);
    ends.resize(std::max(ends.size(), number + 1));
    piece.before = std::exchange(ends[number], piece.rows.end);
  }
}

// A group that touches a piece in two heads, or in two parts, reads it once. Groups and parts are
// in order, so such a group is the last group in one part and the first group in the next.
Wide MaskIndex::Side::words(Range rows, Index size) const {
  const Index head = rows.begin / extent;
  auto from = pieces.begin();
  auto to = pieces.end();
  if (rows.end <= (head + 1) * extent) {  // one head only
    const auto first = std::ranges::partition_point(
        pieces, [&](const Piece& piece) { return piece.rows.end <= rows.begin - head * extent; });
    from = first;
    to = std::partition_point(first, pieces.end(), [&](const Piece& piece) {
      return piece.rows.begin < rows.end - head * extent;
    });
  }
  Wide sum = 0;
  for (auto piece = from; piece != to; ++piece) {
    for (Index k = head; k < heads && k * extent < rows.end; ++k) {
      const Range met = common(part_of({k * extent, (k + 1) * extent}, piece->rows), rows);
      if (met.size() > 0) {
        const Index first = (met.begin - rows.begin) / size;
        const Index last = (met.end - 1 - rows.begin) / size;
        const Index before = k > 0 ? (k - 1) * extent + piece->rows.end : piece->before;
        const bool there = before > rows.begin + first * size;
        sum += Wide(piece->words) * (last - first + (there ? 0 : 1));
      }
    }
  }
  return sum;
}

MaskIndex::Side MaskIndex::Side::compact(const Ranges& live) const {
  const NumbersWithin numbers(live);
  Side left{.extent = numbers.size() / heads, .heads = heads};
  for (const Piece& piece : pieces) {
    const Range met{numbers.below(piece.rows.begin), numbers.below(piece.rows.end)};
    if (met.size() > 0) {
      left.pieces.push_back({met, piece.words, piece.number});
    }
  }
  left.link();
  return left;
}

MaskIndex::Side MaskIndex::Side::reordered(const std::vector<Range>& rows) const {
  Side made{.extent = extent * heads};
  Index at = 0;
  const Piece* before = nullptr;
  for (const Range range : rows) {
    for (Index row = range.begin; row < range.end;) {
      const Index within = row % extent;
      const auto piece = std::ranges::partition_point(
          pieces, [&](const Piece& known) { return known.rows.end <= within; });
      const bool found = piece != pieces.end() && piece->rows.begin <= within;
      const Index next = found                   ? piece->rows.end
                         : piece != pieces.end() ? piece->rows.begin
                                                 : extent;
      const Index count = std::min(next - within, range.end - row);
      if (found && before == &*piece) {
        made.pieces.back().rows.end = at + count;
      } else if (found) {
        made.pieces.push_back({{at, at + count}, piece->words, piece->number});
      }
      before = found ? &*piece : nullptr;
      at += count;
      row += count;
    }
  }
  made.link();
  return made;
}

template <class Make>
MaskIndex MaskIndex::each(const Make& make) const {
  MaskIndex made = *this;
  for (auto& list : made.lists_) {
    list = std::make_shared<const List>(make(*list));
  }
  return made;
}

MaskIndex MaskIndex::transposed() const {
  MaskIndex made = each([](const List& list) { return List{list.file, list.keys, list.queries}; });
  made.of_keys_ = !of_keys_;
  return made;
}

MaskIndex MaskIndex::compact(const Ranges& live_queries, const Ranges& live_keys) const {
  return each([&](const List& list) {
    return List{list.file, list.queries.compact(live_queries), list.keys.compact(live_keys)};
  });
}

MaskIndex MaskIndex::reordered(const std::vector<Range>& queries) const {
  return each([&](const List& list) {
    return List{list.file, list.queries.reordered(queries), list.keys};
  });
}

MaskIndex MaskIndex::stacked(Index heads) const {
  return each([&](List list) {
    list.queries.heads = heads;
    return list;
  });
}

}  // namespace redblue
