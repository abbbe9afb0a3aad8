#include "runtime/pebble/pebbler.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "memsim/errors.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

// Marks numbers in a key. Vertices are odd in a key, and a missing operand is 0.
constexpr std::uint64_t kNumber = 2;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

Index rows_of(const TilePart& part) {
  return part.transposed ? part.columns : part.rows;
}
Index columns_of(const TilePart& part) {
  return part.transposed ? part.rows : part.columns;
}

bool scales(std::string_view map) {
  return map == "multiply" || map == "scale";
}
bool subtracts(std::string_view map) {
  return map == "subtract" || map == "subtract_scaled";
}

// Returns whether the number is one that a fold begins with. Such a number changes no result.
bool is_neutral(std::string_view fold, float number) {
  return fold == "maximum" ? number <= std::numeric_limits<float>::lowest() : number == 0;
}

}  // namespace

Pebbling Pebbler::take() {
  check();
  for (const auto& [place, words] : slow_) {
    for (std::size_t column = 0; column < words.size(); ++column) {
      if (words[column].vertex >= 0) {
        found_.stored.push_back({matrices_.at(place.first), place.second,
                                 static_cast<Index>(column), words[column].vertex});
      }
    }
  }
  return pruned(std::move(found_));
}

void Pebbler::follow(const Event& event) {
  switch (event.kind) {
    case Event::Kind::read:
    case Event::Kind::initialize:
      tiles_[event.tile] = {std::string(event.name), event.cols,
                            std::vector<Word>(slot(event.rows * event.cols),
                                              Word{-1, event.value, !event.unset, -1})};
      if (event.kind == Event::Kind::read) {
        read(event);
      }
      break;
    case Event::Kind::write:
      write(event);
      break;
    case Event::Kind::remove:
      for (Word& word : tiles_.at(event.tile).words) {
        drop(word);
      }
      tiles_.erase(event.tile);
      break;
    case Event::Kind::enter_phase:
    case Event::Kind::leave_phase:
      break;
  }
}

template <class Visit>
void Pebbler::each_stored(const Event& event, const Visit& visit) {
  const ConstBlock& block = *event.block;
  if (block.matrix().holds() == Holds::indices) {
    found_.beside += block.words();
    return;
  }
  const TilePart whole = {.tile = event.tile,
                          .rows = event.rows,
                          .columns = event.cols,
                          .transposed = event.orientation == Orientation::transposed};
  const Part part = part_of(whole);
  const Range rows = block.row_range();
  for (Index row = rows.begin; row < rows.end; ++row) {
    for (const Range columns : block.stored(row)) {
      for (Index column = columns.begin; column < columns.end; ++column) {
        visit(part, row - rows.begin, column - block.column_range().begin,
              stored(block, row, column), row, column);
      }
    }
  }
}

void Pebbler::read(const Event& event) {
  each_stored(event, [&](const Part& part, Index i, Index j, Word& there, Index row, Index column) {
    if (!there.set) {  // an input
      const StoredRow place = event.block->stored_row(row);
      const std::string& matrix = matrices_.at(place.backing);
      there = {add(fmt::format("{}({},{})", matrix, place.row, column), {}, {}), 0, true, -1};
    }
    Word& here = word(part, i, j);
    here = {-1, there.number, true, -1};
    if (there.vertex >= 0) {
      found_.moves.push_back({Act::read, there.vertex});
      hold(here, there.vertex);
    } else {
      ++found_.beside;
    }
  });
}

void Pebbler::write(const Event& event) {
  each_stored(event, [&](const Part& part, Index i, Index j, Word& there, Index, Index) {
    const Word& here = used(part, i, j);
    there = {here.vertex, here.number, true, -1};
    if (here.vertex >= 0) {
      found_.moves.push_back({Act::write, here.vertex});
    } else {
      ++found_.beside;
    }
  });
}

void Pebbler::follow(const Operation& operation) {
  switch (operation.form) {
    case Operation::Form::product:
      return multiply(operation);
    case Operation::Form::map:
      return map(operation);
    case Operation::Form::fold:
      return fold(operation);
  }
}

void Pebbler::multiply(const Operation& operation) {
  const Part a = part_of(operation.operands[0]), b = part_of(operation.operands[1]);
  const Part c = part_of(operation.result);
  for (Index i = 0; i < rows_of(operation.result); ++i) {
    for (Index j = 0; j < columns_of(operation.result); ++j) {
      if (!operation.old) {
        overwrite(c, i, j);
      }
      used(c, i, j);
      for (Index k = 0; k < columns_of(operation.operands[0]); ++k) {
        add_term(c, i, j, used(a, i, k), used(b, k, j));
      }
    }
  }
}

void Pebbler::map(const Operation& operation) {
  const Part c = part_of(operation.result);
  for (Index i = 0; i < rows_of(operation.result); ++i) {
    for (Index j = 0; j < columns_of(operation.result); ++j) {
      std::vector<Word> operands;
      if (operation.old) {
        operands.push_back(used(c, i, j));
      }
      for (const TilePart& operand : operation.operands) {
        operands.push_back(used(part_of(operand), i, j));
      }
      const bool adds = operation.name == "add";
      if (operation.name == "copy" || (adds && is_zero(operands[0]))) {
        copy(c, i, j, operands.back());
        continue;
      }
      if (is_zero_of(operation.name, operands)) {  // of a dead pair
        copy(c, i, j, Word{-1, 0, true, -1});
        continue;
      }
      if (operation.old && leaves(operation.name, operands)) {
        continue;
      }
      // A map that is linear in its first word continues the sum of this word.
      Pebbling::Made made;
      if ((operation.old && (adds || subtracts(operation.name) || scales(operation.name))) ||
          operation.name == "divide") {
        made = {.sum = operands[0].vertex, .joined = adds ? operands[1].vertex : -1};
      }
      make(c, i, j, operation.name, operands, operation.constant, made);
    }
  }
}

bool Pebbler::is_zero(const Word& word) {
  return word.vertex < 0 && word.number == 0;
}

// Returns whether the map is 0 for its words: f (q - v) or f / l with f = 0, phi'(s) q with q = 0.
bool Pebbler::is_zero_of(std::string_view map, const std::vector<Word>& words) {
  if (map == "softmax_gradient") {
    return is_zero(words[0]);
  }
  if (map == "divide") {
    return is_zero(words[0]) && words[1].vertex >= 0;
  }
  return map.ends_with("_gradient") && is_zero(words[1]);
}

// Returns whether a map leaves its first word unchanged: 0 times a number, or a number plus or
// minus 0.
bool Pebbler::leaves(std::string_view map, const std::vector<Word>& words) {
  if (scales(map)) {
    return is_zero(words[0]);
  }
  return (map == "add" || subtracts(map)) && std::any_of(words.begin() + 1, words.end(), is_zero);
}

void Pebbler::copy(const Part& part, Index i, Index j, const Word& from) {
  overwrite(part, i, j);
  Word& to = word(part, i, j);
  to.number = from.number;
  if (from.vertex >= 0) {
    hold(to, from.vertex);
  }
}

void Pebbler::fold(const Operation& operation) {
  const Part c = part_of(operation.result);
  for (Index i = 0; i < rows_of(operation.result); ++i) {
    if (!operation.old) {
      overwrite(c, i, 0);
    }
    for (Index j = 0; j < columns_of(operation.operands[0]); ++j) {
      std::vector<Word> operands;
      for (const TilePart& operand : operation.operands) {
        operands.push_back(used(part_of(operand), i, j));
      }
      if (operands.size() == 2) {
        add_term(c, i, 0, operands[0], operands[1]);
        continue;
      }
      Word& to = used(c, i, 0);
      const Word& term = operands[0];
      if (term.vertex < 0 && is_neutral(operation.name, term.number)) {
        continue;
      }
      if (to.vertex < 0 && is_neutral(operation.name, to.number)) {
        to.number = term.number;
        if (term.vertex >= 0) {
          hold(to, term.vertex);
        }
        continue;
      }
      operands.insert(operands.begin(), to);
      make(c, i, 0, operation.name, operands, 0, {});
    }
  }
}

Pebbler::Part Pebbler::part_of(const TilePart& part) {
  return {&tiles_.at(part.tile), &part};
}

// Returns the place in the tile.
std::pair<Index, Index> Pebbler::place(const TilePart& part, Index i, Index j) {
  if (part.of == TilePart::Of::rows) {
    return {part.row + i, part.column};
  }
  if (part.of == TilePart::Of::columns) {
    return {part.row + j, part.column};
  }
  return part.transposed ? std::pair{part.row + j, part.column + i}
                         : std::pair{part.row + i, part.column + j};
}

Pebbler::Word& Pebbler::word(const Part& part, Index i, Index j) {
  const auto [row, column] = place(*part.part, i, j);
  return part.tile->words.at(slot(row * part.tile->columns + column));
}

Pebbler::Word& Pebbler::used(const Part& part, Index i, Index j) {
  Word& word = this->word(part, i, j);
  if (!word.set) {
    word.set = true;
    ++found_.by_hand;
  }
  return word;
}

void Pebbler::overwrite(const Part& part, Index i, Index j) {
  Word& word = this->word(part, i, j);
  drop(word);
  word = {-1, 0, true, -1};
}

void Pebbler::make(const Part& part, Index i, Index j, std::string_view name,
                   const std::vector<Word>& operands, float number, const Pebbling::Made& made) {
  const bool of_words =
      std::ranges::any_of(operands, [](const Word& word) { return word.vertex >= 0; });
  // exp(-inf - L) of a dead pair.
  const bool dead = name == "exp_difference" && operands[0].vertex < 0 &&
                    operands[0].number == -std::numeric_limits<float>::infinity();
  Word& to = word(part, i, j);
  if (!of_words || dead) {
    drop(to);
    to.number = name == "fill" ? number : dead ? 0 : kNone;
    to.set = true;
    return;
  }
  compute(to, vertex_of(name, operands, number, home_of(part, i, j), '+', made));
}

void Pebbler::add_term(const Part& part, Index i, Index j, const Word& a, const Word& b) {
  if (is_zero(a) || is_zero(b)) {
    return;
  }
  Word& to = word(part, i, j);
  const bool begins = is_zero(to);
  if (a.vertex < 0 && b.vertex < 0) {
    require(to.vertex < 0, "a product of numbers is added to a number");
    to.number = kNone;
    return;
  }
  Home& home = home_of(part, i, j);
  const Pebbling::Made made = {.sum = to.vertex, .a = a.vertex, .b = b.vertex};
  if (begins || products_ == ProductPebbles::vertices) {
    const Index known = found_.dag.size();
    const Index term = vertex_of("term", {a, b}, 0, home, '*', {.a = a.vertex, .b = b.vertex});
    if (begins || term == known) {  // the first term of a sum is a word
      found_.dag.vertices[slot(term)].term = !begins;
    }
    if (begins) {
      compute(to, term);
      return;
    }
    Word here;
    compute(here, term);
    compute(to, vertex_of("sum", {to, here}, 0, home, '+', made));
    drop(here);
    return;
  }
  compute(to, vertex_of("sum", {to, a, b}, 0, home, '+', made));
}

void Pebbler::compute(Word& word, Index vertex) {
  Move move = {Act::compute, vertex};
  if (word.vertex >= 0) {
    const std::vector<Index>& operands = found_.dag[vertex].operands;
    if (std::ranges::find(operands, word.vertex) == operands.end()) {
      drop(word);
    } else if (--holders_[slot(word.vertex)] == 0) {
      move.slides = word.vertex;
    }
  }
  found_.moves.push_back(move);
  hold(word, vertex);
  word.set = true;
}

void Pebbler::hold(Word& word, Index vertex) {
  word.vertex = vertex;
  ++holders_[slot(vertex)];
}

void Pebbler::drop(Word& word) {
  if (word.vertex >= 0 && --holders_[slot(word.vertex)] == 0) {
    found_.moves.push_back({Act::remove, word.vertex});
  }
  word.vertex = -1;
}

Pebbler::Home& Pebbler::home_of(const Part& part, Index i, Index j) {
  Word& word = this->word(part, i, j);
  if (word.home < 0) {
    const auto [row, column] = place(*part.part, i, j);
    std::string name = fmt::format("{}({},{})", part.tile->name, row, column);
    const Index times = ++named_[name];
    if (times > 1) {
      name += fmt::format("@{}", times);
    }
    word.home = std::ssize(homes_);
    homes_.push_back({std::move(name)});
  }
  return homes_[slot(word.home)];
}

Index Pebbler::vertex_of(std::string_view function, const std::vector<Word>& operands, float number,
                         Home& home, char kind, const Pebbling::Made& made) {
  require(operands.size() <= kMostOperands, "an operation has few operands");
  Key key = {.function = id_of(function), .number = std::bit_cast<std::uint32_t>(number)};
  std::vector<Index> vertices;
  for (std::size_t at = 0; at < operands.size(); ++at) {
    const auto& [vertex, value, set, named] = operands[at];
    if (vertex >= 0) {
      vertices.push_back(vertex);
      key.operands[at] = static_cast<std::uint64_t>(vertex) << 1 | 1;
    } else {
      key.operands[at] = (std::uint64_t{std::bit_cast<std::uint32_t>(value)} << 1) + kNumber;
    }
  }
  if (function == "term" || function == "sum") {  // factors have no order
    std::ranges::sort(key.operands.begin() + (function == "sum" ? 1 : 0),
                      key.operands.begin() + std::ssize(operands));
  }
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  // A product of a word with itself lists the word once. The other operands keep their order.
  std::vector<Index> once;
  for (const Index vertex : vertices) {
    if (std::ranges::find(once, vertex) == once.end()) {
      once.push_back(vertex);
    }
  }
  const bool plain = kind == '+' && home.steps == 0;
  std::string name = plain ? home.name : fmt::format("{}{}{}", home.name, kind, home.steps);
  home.steps += kind == '+' ? 1 : 0;
  if (kind == '*' && home.steps == 0) {
    home.steps = 1;
  }
  const Index vertex = add(std::move(name), std::move(once), made);
  known_.emplace(key, vertex);
  return vertex;
}

std::uint32_t Pebbler::id_of(std::string_view function) {
  const auto known = functions_.find(function);
  return known != functions_.end()
             ? known->second
             : functions_.emplace(function, static_cast<std::uint32_t>(functions_.size()))
                   .first->second;
}

std::size_t Pebbler::HashOfKey::operator()(const Key& key) const {
  std::uint64_t hash = std::uint64_t{key.function} << 32 | key.number;
  for (const std::uint64_t operand : key.operands) {
    hash = (hash ^ operand) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

Index Pebbler::add(std::string name, std::vector<Index> operands, const Pebbling::Made& made) {
  if (found_.dag.size() == kMostPebbled) {
    throw InputError(
        fmt::format("a run of more than {} vertices: take smaller extents", kMostPebbled));
  }
  holders_.push_back(0);
  found_.made.push_back(made);
  return found_.dag.add(std::move(name), std::move(operands));
}

Pebbler::Word& Pebbler::stored(const ConstBlock& block, Index row, Index column) {
  const StoredRow place = block.stored_row(row);
  if (!matrices_.contains(place.backing)) {
    std::string name(block.matrix().name());
    const Index times = ++named_[name];
    matrices_[place.backing] = times > 1 ? fmt::format("{}@{}", name, times) : name;
  }
  std::vector<Word>& words = slow_[{place.backing, place.row}];
  if (std::ssize(words) <= column) {
    words.resize(slot(column) + 1);
  }
  return words[slot(column)];
}

}  // namespace redblue
