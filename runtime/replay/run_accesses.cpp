#include "runtime/replay/run_accesses.hpp"

#include <fmt/format.h>

#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

using Kind = Access::Kind;

std::size_t at_index(Index at) {
  return static_cast<std::size_t>(at);
}

}  // namespace

// A part of a tile, by row and column as the operation takes them.
class RunAccesses::Part {
 public:
  Part(const TilePart& part, Tile& tile)
      : rows(part.transposed ? part.columns : part.rows),
        columns(part.transposed ? part.rows : part.columns),
        first_(&tile.words.at(at_index(part.row * tile.columns + part.column))) {
    const bool column = part.of != TilePart::Of::words;
    const Index down = tile.columns, right = column ? 0 : 1;
    const bool turned = column ? part.of == TilePart::Of::columns : part.transposed;
    by_row_ = turned ? right : down;
    by_column_ = turned ? down : right;
  }
  Word& operator()(Index i, Index j) const { return first_[i * by_row_ + j * by_column_]; }

  Index rows, columns;

 private:
  Word* first_;
  Index by_row_, by_column_;
};

Accesses RunAccesses::take() {
  check();
  while (!tiles_.empty()) {
    remove(tiles_.begin()->first);
  }
  for (Code code = 0; code < places_.size(); ++code) {
    if (places_[code].dies && places_[code].touched > 0) {
      touch(Kind::dead, code);
    }
  }
  // Numbers in the order of first touches: the words of the run.
  std::vector<Code> number(places_.size(), kUnknown);
  Accesses found{.in_order = std::move(in_order_), .words = 0, .stretches = std::move(stretches_)};
  for (Access& access : found.in_order) {
    const bool waited = (access.word & kPending) != 0;
    Code& known = number[waited ? pending(access.word).address : access.word];
    if (known == kUnknown) {
      known = static_cast<Code>(found.words++);
    }
    access.word = known;
  }
  return found;
}

void RunAccesses::follow(const Event& event) {
  switch (event.kind) {
    case Event::Kind::initialize:
      begin(event);
      break;
    case Event::Kind::read:
      begin(event);
      read(event);
      break;
    case Event::Kind::write:
      write(event);
      break;
    case Event::Kind::remove:
      remove(event.tile);
      break;
    case Event::Kind::enter_phase:
    case Event::Kind::leave_phase:
      path_.follow(event);
      stretches_.push_back({in_order_.size(), path_.path()});
      break;
  }
}

void RunAccesses::begin(const Event& event) {
  std::vector<std::size_t>& free = free_frames_[std::string(event.name)];
  if (free.empty()) {
    free.push_back(frames_.size());
    frames_.emplace_back();
  }
  tiles_[event.tile] = {std::string(event.name), event.cols, free.back(),
                        std::vector<Word>(at_index(event.rows * event.cols))};
  free.pop_back();
}

template <class Visit>
void RunAccesses::each_stored(const Event& event, const Visit& visit) {
  const ConstBlock& block = *event.block;
  Tile& tile = tiles_.at(event.tile);
  const bool straight = event.orientation == Orientation::straight;
  const Range rows = block.row_range();
  const Index first = block.column_range().begin;
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (const Range columns : block.stored(row)) {
      for (Index column = columns.begin; column < columns.end; ++column) {
        const Index i = row - rows.begin, j = column - first;
        visit(tile.words.at(at_index(straight ? i * tile.columns + j : j * tile.columns + i)),
              stored(block, row, column));
      }
    }
  }
}

void RunAccesses::read(const Event& event) {
  if (event.block->matrix().holds() == Holds::indices) {
    return pass_indices(Kind::need, *event.block);
  }
  each_stored(event, [&](Word& word, Code from) { word = {from, places_[from].version}; });
}

void RunAccesses::write(const Event& event) {
  if (event.block->matrix().holds() == Holds::indices) {
    return pass_indices(Kind::overwrite, *event.block);
  }
  each_stored(event, [&](Word& word, Code to) { write(word, to); });
}

// Words that are nowhere in a tile.
void RunAccesses::pass_indices(Kind kind, const ConstBlock& block) {
  const Range rows = block.row_range(), columns = block.column_range();
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (Index column = columns.begin; column < columns.end; ++column) {
      touch(kind, stored(block, row, column));
    }
  }
}

void RunAccesses::write(Word& word, Code to) {
  if (word.code == to) {
    return check_version(word);
  }
  if (word.code == kNumber) {
    touch(Kind::overwrite, to);
  } else if ((word.code & kPending) != 0 && places_[to].touched <= pending(word.code).since) {
    Pending& known = pending(word.code);
    known.address = to;
    places_[to].touched = known.touched;
  } else {
    need(word);
    touch(Kind::overwrite, to);
    if ((word.code & kPending) != 0) {
      touch(Kind::dead, word.code);
      pending(word.code).address = new_address(false);
    }
  }
  word = {to, ++places_[to].version};
}

void RunAccesses::remove(std::uint64_t number) {
  const Tile& tile = tiles_.at(number);
  for (std::size_t at = 0; at < tile.words.size(); ++at) {
    const Code code = tile.words[at].code;
    if (code != kNumber && (code & kPending) != 0) {
      touch(Kind::dead, code);
      pending(code).address = scratch(tile, at);
    }
  }
  free_frames_[tile.name].push_back(tile.frame);
  tiles_.erase(number);
}

void RunAccesses::follow(const Operation& operation) {
  switch (operation.form) {
    case Operation::Form::product:
      return multiply(operation);
    case Operation::Form::map:
      return map(operation);
    case Operation::Form::fold:
      return fold(operation);
  }
}

RunAccesses::Part RunAccesses::part(const TilePart& part) {
  return {part, tiles_.at(part.tile)};
}

std::vector<RunAccesses::Part> RunAccesses::parts(std::span<const TilePart> parts) {
  std::vector<Part> all;
  for (const TilePart& each : parts) {
    all.push_back(part(each));
  }
  return all;
}

void RunAccesses::multiply(const Operation& operation) {
  const Part a = part(operation.operands[0]), b = part(operation.operands[1]);
  const Part c = part(operation.result);
  for (Index k = 0; k < a.columns; ++k) {
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.columns; ++j) {
        need(a(i, k));
        need(b(k, j));
        if (k == 0 && !operation.old) {
          overwrite(c(i, j));
        } else {
          change(c(i, j));
        }
      }
    }
  }
}

void RunAccesses::map(const Operation& operation) {
  const std::vector<Part> operands = parts(operation.operands);
  const Part c = part(operation.result);
  for (Index i = 0; i < c.rows; ++i) {
    for (Index j = 0; j < c.columns; ++j) {
      for (const Part& operand : operands) {
        need(operand(i, j));
      }
      if (operation.old) {
        change(c(i, j));
      } else {
        overwrite(c(i, j));
      }
    }
  }
}

void RunAccesses::fold(const Operation& operation) {
  const std::vector<Part> operands = parts(operation.operands);
  const Part c = part(operation.result);
  for (Index i = 0; i < c.rows; ++i) {
    for (Index j = 0; j < operands.front().columns; ++j) {
      for (const Part& operand : operands) {
        need(operand(i, j));
      }
      if (j == 0 && !operation.old) {
        overwrite(c(i, 0));
      } else {
        change(c(i, 0));
      }
    }
  }
}

void RunAccesses::touch(Kind kind, Code code) {
  if (std::ssize(in_order_) == kMostAccesses) {
    throw InputError(
        fmt::format("a run of more than {} accesses: take smaller extents", kMostAccesses));
  }
  in_order_.push_back({kind, code});
  const auto touched = static_cast<std::uint32_t>(in_order_.size());
  ((code & kPending) != 0 ? pending(code).touched : places_[code].touched) = touched;
}

void RunAccesses::need(Word& word) {
  if (word.code == kNumber) {
    return overwrite(word);
  }
  check_version(word);
  touch(Kind::need, word.code);
}

void RunAccesses::change(Word& word) {
  if (word.code == kNumber) {
    return overwrite(word);
  }
  if ((word.code & kPending) != 0) {
    return touch(Kind::change, word.code);
  }
  need(word);
  overwrite(word);
}

void RunAccesses::overwrite(Word& word) {
  if (word.code == kNumber || (word.code & kPending) == 0) {
    word.code = pending();
  }
  touch(Kind::overwrite, word.code);
}

void RunAccesses::check_version(const Word& word) const {
  if ((word.code & kPending) == 0 && word.version != places_[word.code].version) {
    throw InputError(
        "the run uses a word after another has taken its place in the slow store: its "
        "accesses are not known");
  }
}

RunAccesses::Code RunAccesses::pending() {
  pending_.push_back({static_cast<std::uint32_t>(in_order_.size()), 0, kUnknown});
  return kPending | static_cast<Code>(pending_.size() - 1);
}

RunAccesses::Code RunAccesses::new_address(bool dies) {
  places_.push_back({.touched = 0, .version = 0, .dies = dies});
  return static_cast<Code>(places_.size() - 1);
}

RunAccesses::Code RunAccesses::scratch(const Tile& tile, std::size_t at) {
  std::vector<Code>& frame = frames_[tile.frame];
  while (frame.size() <= at) {
    frame.push_back(new_address(false));
  }
  return frame[at];
}

RunAccesses::Code RunAccesses::stored(const ConstBlock& block, Index row, Index column) {
  const StoredRow place = block.stored_row(row);
  std::vector<Code>& codes = slow_[{place.backing, place.row}];
  if (std::ssize(codes) <= column) {
    codes.resize(at_index(column) + 1, kUnknown);
  }
  Code& code = codes[at_index(column)];
  if (code == kUnknown) {
    const SlowMatrix& matrix = block.matrix();
    code = new_address(matrix.holds() != Holds::indices && !kept_.contains(matrix.name()));
  }
  return code;
}

}  // namespace redblue
