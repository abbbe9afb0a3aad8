#include "kernels/nests/count.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "memsim/errors.hpp"
#include "memsim/range.hpp"

namespace redblue {

std::vector<Index> values_of(const TextNest& nest, const NestSizes& sizes) {
  std::vector<Index> values = sizes.extents.values();
  values[kMasked] = sizes.mask.full() ? 0 : 1;
  values[kSoftmax] = sizes.softmax ? 1 : 0;
  values.resize(nest.symbols.size(), 0);
  for (const NestBlock& block : nest.blocks) {
    const std::string& name = nest.symbols[block.symbol].name;
    if (!sizes.blocks.contains(name) && !block.size) {
      throw NestError(nest.file, block.line, "the block " + name + " has no size");
    }
    const Index size = sizes.blocks.contains(name) ? sizes.blocks[name] : block.size->value(values);
    if (size < 0) {
      throw NestError(nest.file, block.line,
                      "the block " + name + " would have the size " + std::to_string(size));
    }
    values[block.symbol] = size;
  }
  return values;
}

class NestCounter::Walk {
 public:
  Walk(const TextNest& nest, const Mask& mask, Index sum_words, std::vector<PhaseCost>& phases)
      : nest_(nest), mask_(mask), sum_words_(sum_words), phases_(phases) {
    const std::size_t symbols = nest.symbols.size();
    asked_.resize(symbols);
    positioned_.resize(symbols);
    rowwise_.resize(symbols);
    passes_.resize(symbols);
    at_.resize(symbols);
    met_.resize(symbols);
    met_symbol_.resize(symbols, kNoSymbol);
    alive_.resize(nest.tile_names.size());
    if (!mask.full()) {
      transposed_ = mask.transposed();
    }
    for (SymbolId symbol = 0; symbol < symbols; ++symbol) {
      if (nest.symbols[symbol].kind == NestSymbol::Kind::met) {
        met_symbol_[nest.symbols[symbol].range] = symbol;
        if (!mask.full()) {
          position(nest.symbols[symbol].range);
        }
      }
    }
    prepare(nest.statements, {});
    for (const std::string& path : nest.phases) {
      phases_.push_back({.path = path, .reads = 0, .writes = 0, .peak = 0, .flops = 0});
      std::vector<std::size_t>& outer = around_.emplace_back();
      for (std::size_t other = 0; other < nest.phases.size(); ++other) {
        if (path.starts_with(nest.phases[other] + "/")) {
          outer.push_back(other);
        }
      }
    }
  }

  void only_with(const std::vector<SymbolId>& blocks) {
    left_out_.clear();
    leave_out(nest_.statements, blocks);
  }
  [[nodiscard]] Index steps() const { return steps_; }
  // What a statement did in all passes.
  struct Moved {
    Words passes;                // of a text or a drop
    Index trips = 0, block = 0;  // of a loop: the most passes at once, and the largest block
    std::vector<MovedTile> tiles = {};
  };
  [[nodiscard]] const Moved& moved(const NestStatement& statement) const {
    return moved_[statement.number];
  }

  // Whether the phase began.
  [[nodiscard]] bool entered(std::size_t phase) const { return entered_[phase]; }

  void count(const std::vector<Index>& values) {
    values_ = values;
    for (PhaseCost& phase : phases_) {
      phase.reads = phase.writes = phase.peak = phase.flops = 0;
    }
    moved_.assign(nest_.size, {});
    entered_.assign(phases_.size(), false);
    std::ranges::fill(alive_, Words(0));
    living_ = 0;
    inside_.clear();
    phase_ = phases_.size();
    walk(nest_.statements, {});
    leave();
  }

 private:
  // The number of times that something happens: the product of three numbers. `base` counts passes
  // of loops that are walked class by class. `group` is the number of blocks in the class that is
  // walked, and 1 inside a loop over the rows that they meet. `rest` counts passes of the loops
  // inside.
  struct Times {
    Words base = 1, group = 1, rest = 1;

    [[nodiscard]] Words all() const { return base * group * rest; }
  };

  // A class of passes of a loop. `begins` and `ends` are for loops over what an outer block meets:
  // the rows of the block that no earlier block, or no later block, of the outer loop meets.
  struct PassClass {
    Index size = 0;
    bool first = true, last = true;
    Index begins = 0, ends = 0;
    Index met = 0;  // the others that the block meets, if a size asks

    friend auto operator<=>(const PassClass&, const PassClass&) = default;
  };
  using PassClasses = std::vector<std::pair<PassClass, Words>>;  // and the number of passes

  // Loops around a statement, outermost first.
  using Around = std::vector<const NestStatement*>;

  void leave_out(const std::vector<NestStatement>& list, const std::vector<SymbolId>& blocks) {
    for (const NestStatement& statement : list) {
      if (statement.kind == NestStatement::Kind::phase ||
          statement.kind == NestStatement::Kind::when) {
        leave_out(statement.body, blocks);
      } else if (std::ranges::none_of(blocks,
                                      [&](SymbolId block) { return uses(statement, block); })) {
        left_out_.push_back(&statement);
      }
    }
  }

  // Finds loops with a first or last pass that a condition names. Also finds loops with blocks that
  // must be known by their position, because an inner loop visits the rows that they meet.
  void prepare(const std::vector<NestStatement>& list, const Around& around) {
    for (const NestStatement& statement : list) {
      if (statement.kind == NestStatement::Kind::loop) {
        if (!mask_.full() && statement.met_by != kNoSymbol) {
          position(statement.met_by);
          position(statement.range);
        }
        Around inside = around;
        inside.push_back(&statement);
        prepare(statement.body, inside);
      } else {
        prepare(statement.body, around);
      }
      for (const NestCondition& condition : statement.conditions) {
        prepare_condition(condition, around);
      }
    }
  }
  // A piece of a positioned block is positioned itself.
  void position(SymbolId symbol) {
    while (nest_.symbols[symbol].kind == NestSymbol::Kind::variable && !positioned_[symbol]) {
      positioned_[symbol] = true;
      const NestStatement& loop = nest_.loop_of(symbol);
      if (loop.met_by != kNoSymbol) {
        position(loop.met_by);
      }
      symbol = loop.range;
    }
  }
  void prepare_condition(const NestCondition& condition, const Around& around) {
    asked_[condition.variable] = true;
    for (const NestStatement* loop : around) {
      if (!mask_.full() && loop->met_by == condition.variable) {
        rowwise_[loop->variable] = true;
      }
    }
  }

  void walk(const std::vector<NestStatement>& list, const Times& times) {
    for (const NestStatement& statement : list) {
      PhaseCost& phase = phases_[statement.phase];
      switch (statement.kind) {
        case NestStatement::Kind::loop:
          walk_loop(statement, times);
          continue;
        case NestStatement::Kind::phase:
          walk(statement.body, times);
          continue;
        case NestStatement::Kind::text:
          moved_[statement.number].passes += 1;
          continue;
        case NestStatement::Kind::when:
          if (holds(statement.comparison, statement.size.value(values_),
                    statement.right.value(values_))) {
            walk(statement.body, times);
          }
          continue;
        case NestStatement::Kind::drop:
          if (!is_now(statement)) {
            continue;
          }
          enter(statement.phase);
          moved_[statement.number].passes += 1;
          for (const TextTile& tile : statement.tiles) {
            living_ = less(living_, alive_[tile.name]);
            alive_[tile.name] = 0;
          }
          break;
        case NestStatement::Kind::flops:
          enter(statement.phase);
          phase.flops += Words(statement.size.value(values_)) * times.all();
          break;
        case NestStatement::Kind::read:
        case NestStatement::Kind::make:
        case NestStatement::Kind::write:
        case NestStatement::Kind::index:
          enter(statement.phase);
          move(statement, phase, times.all());
      }
      phase.peak = std::max(phase.peak, living_);
    }
  }

  // Words that live when a phase begins or continues count towards its peak, as on a machine. It
  // does so at the first statement that happens in it.
  void enter(std::size_t phase) {
    if (phase == phase_) {
      return;
    }
    leave();
    phase_ = phase;
    entered_[phase] = true;
    raise(phase);
    leave();
  }
  void leave() {
    if (phase_ < phases_.size()) {
      std::ranges::for_each(around_[phase_], [&](std::size_t outer) { raise(outer); });
    }
  }
  void raise(std::size_t phase) { phases_[phase].peak = std::max(phases_[phase].peak, living_); }

  // Whether a statement without conditions row by row happens in this pass.
  [[nodiscard]] bool is_now(const NestStatement& statement) const {
    return std::ranges::all_of(statement.conditions, [&](const NestCondition& condition) {
      const PassClass& pass = passes_[condition.variable];
      return condition.holds(condition.first ? pass.first : pass.last);
    });
  }

  static Words less(Words all, Words part) {
    return all.overflowed() ? all : Words(all.value() - part.value());
  }

  void move(const NestStatement& statement, PhaseCost& phase, Words times) {
    for (std::size_t k = 0; k < statement.tiles.size(); ++k) {
      const TextTile& tile = statement.tiles[k];
      const bool is_index = statement.kind == NestStatement::Kind::index;
      const Words words = !is_index      ? words_of(tile, statement)
                          : mask_.full() ? Words(0)
                                         : Words(mask_.index().live());
      const bool in_part = tile.in_part() && !mask_.full();
      const Words all = in_part ? words_of_part(tile, statement) : words * times;
      Moved& moved = moved_[statement.number];
      moved.tiles.resize(statement.tiles.size());
      moved.tiles[k].largest = std::max(moved.tiles[k].largest, words);
      if (statement.kind != NestStatement::Kind::make) {
        moved.tiles[k].moved += all;
      }
      if (statement.kind == NestStatement::Kind::write) {
        phase.writes += all;
        continue;
      }
      if (statement.kind == NestStatement::Kind::read || is_index) {
        phase.reads += all;
      }
      if (alive_[tile.name] == Words(0)) {
        made_.push_back(tile.name);
      }
      alive_[tile.name] += words;
      living_ += words;
    }
  }

  // The words of a tile that moves in part, in all passes. The loops that select the part visit
  // all of it once (kernels/nests/check.cpp), so the first class of their blocks counts it all.
  [[nodiscard]] Words words_of_part(const TextTile& tile, const NestStatement& statement) const {
    Words words = tile.sum ? sum_words_ : 1;
    for (const auto& [loop, passes, is_first] : inside_) {
      const bool selects = nest_.selects(*loop, tile);
      if (selects && !is_first) {
        return 0;
      }
      words *= selects ? Words(1) : passes;
    }
    for (const NestIndex& index : tile.indices) {
      if (!nest_.is_selected(index, tile)) {
        words *= index.kind == NestIndex::Kind::block ? values_[index.symbol]
                                                      : size_of_index(index, statement);
      }
    }
    const Range queries{0, values_[kExtentN]}, keys{0, values_[kExtentM]};
    if (tile.live) {
      return words * mask_.pairs(queries, keys);
    }
    const Index block = nest_.loop_of(tile.met_by).size.value(values_);
    const Mask::Met met = nest_.root(tile.met_by) == kExtentN
                              ? mask_.met_by_groups(queries, block)
                              : transposed_.met_by_groups(keys, block);
    return words * (statement.kind == NestStatement::Kind::index ? met.index : met.keys);
  }

  // The words of a tile that this statement moves or makes.
  [[nodiscard]] Words words_of(const TextTile& tile, const NestStatement& statement) const {
    for (const NestCondition& condition : statement.conditions) {
      const PassClass& pass = passes_[condition.variable];
      if (!is_by_rows(tile, condition) &&
          !condition.holds(condition.first ? pass.first : pass.last)) {
        return 0;
      }
    }
    Words words = tile.sum ? sum_words_ : 1;
    for (const NestIndex& index : tile.indices) {
      words *= index.kind == NestIndex::Kind::block ? rows_of(index.symbol, statement)
                                                    : size_of_index(index, statement);
    }
    return words;
  }
  [[nodiscard]] Index size_of_index(const NestIndex& index, const NestStatement& statement) const {
    switch (index.kind) {
      case NestIndex::Kind::number:
        return index.number;
      case NestIndex::Kind::extent:
        return values_[index.symbol];
      case NestIndex::Kind::part: {
        const Index size = index.size.value(values_);
        if (size < 0) {
          throw NestError(nest_.file, statement.line,
                          "a tile would have the size " + std::to_string(size));
        }
        return index.symbol == kNoSymbol || index.symbol < kExtents
                   ? size
                   : std::min(size, values_[nest_.extent_of(index.symbol)]);
      }
      case NestIndex::Kind::block:
      case NestIndex::Kind::each:
        break;
    }
    return 1;
  }
  // Whether a condition holds row by row for a tile: its loop visits what blocks of the condition's
  // loop meet.
  [[nodiscard]] bool is_by_rows(const TextTile& tile, const NestCondition& condition) const {
    return std::ranges::any_of(tile.indices, [&](const NestIndex& index) {
      return index.kind == NestIndex::Kind::block && is_by_rows(index.symbol, condition);
    });
  }
  [[nodiscard]] bool is_by_rows(SymbolId variable, const NestCondition& condition) const {
    return rowwise_[variable] && nest_.loop_of(variable).met_by == condition.variable;
  }
  // The rows of the current block for which the conditions hold.
  [[nodiscard]] Index rows_of(SymbolId variable, const NestStatement& statement) const {
    const PassClass& pass = passes_[variable];
    Index rows = values_[variable];
    Index asked = 0;
    for (const NestCondition& condition : statement.conditions) {
      refuse_pieces(variable, condition, statement);
      if (is_by_rows(variable, condition)) {
        rows = condition.first ? pass.begins : pass.ends;
        rows = condition.negated ? pass.size - rows : rows;
        ++asked;
      }
    }
    if (asked > 1) {
      throw NestError(nest_.file, statement.line,
                      "under a mask only one condition may be about " +
                          nest_.symbols[nest_.loop_of(variable).met_by].name);
    }
    return rows;
  }
  // A condition that holds row by row needs the whole block, or a loop over its met rows.
  void refuse_pieces(SymbolId variable, const NestCondition& condition,
                     const NestStatement& statement) const {
    if (is_by_rows(variable, condition)) {
      return;
    }
    for (SymbolId outer = nest_.loop_of(variable).range;
         nest_.symbols[outer].kind == NestSymbol::Kind::variable;
         outer = nest_.loop_of(outer).range) {
      if (is_by_rows(outer, condition)) {
        throw NestError(nest_.file, statement.line,
                        "under a mask this condition is for whole blocks of " +
                            nest_.symbols[outer].name + ": move the tile out of the loop " +
                            nest_.symbols[variable].name);
      }
    }
  }

  void walk_loop(const NestStatement& loop, const Times& times) {
    if (std::ranges::find(left_out_, &loop) != left_out_.end()) {
      return;
    }
    const Index block = loop.size.value(values_);
    if (block < 1) {
      throw NestError(nest_.file, loop.line,
                      "the blocks of " + nest_.symbols[loop.variable].name +
                          " would have the size " + std::to_string(block));
    }
    if (positioned_[loop.variable]) {
      walk_positioned(loop, block, times);
    } else if (!mask_.full() && loop.met_by != kNoSymbol) {
      walk_met(loop, block, times);
    } else {
      const Index from = begin_of(loop);
      if (from >= values_[loop.range]) {
        return;
      }
      note_trips(loop, ceil_div(values_[loop.range] - from, block));
      each_class(values_[loop.range] - from, block, asked_[loop.variable],
                 [&, is_first = true](const PassClass& pass, Index passes) mutable {
                   Times inside = times;
                   inside.rest *= passes;
                   walk_body({&loop, passes, std::exchange(is_first, false)}, pass, inside);
                 });
    }
  }

  void note_trips(const NestStatement& loop, Index trips) {
    moved_[loop.number].trips = std::max(moved_[loop.number].trips, trips);
  }

  // The classes of the blocks of one range.
  template <class Visit>
  static void each_class(Index extent, Index block, bool asked, Visit&& visit) {
    const Index passes = ceil_div(extent, block);
    const Index rest = extent - (passes - 1) * block;  // the last block
    if (passes == 1) {
      visit(PassClass{.size = extent}, 1);
    } else if (asked) {
      visit(PassClass{.size = block, .last = false}, 1);
      if (passes > 2) {
        visit(PassClass{.size = block, .first = false, .last = false}, passes - 2);
      }
      visit(PassClass{.size = rest, .first = false}, 1);
    } else if (rest == block) {
      visit(PassClass{.size = block}, passes);
    } else {
      visit(PassClass{.size = block}, passes - 1);
      visit(PassClass{.size = rest}, 1);
    }
  }

  // A loop whose body is walked: the passes of this class, and whether it is the first class.
  struct Inside {
    const NestStatement* loop;
    Words passes;
    bool is_first;
  };
  void walk_body(const Inside& inside, const PassClass& pass, const Times& times) {
    const NestStatement& loop = *inside.loop;
    inside_.push_back(inside);
    ++steps_;
    Moved& moved = moved_[loop.number];
    moved.passes += times.all();
    moved.block = std::max(moved.block, pass.size);
    const std::size_t made = made_.size();
    const Words living = living_;
    passes_[loop.variable] = pass;
    set_values(loop, pass);
    walk(loop.body, times);
    inside_.pop_back();
    for (std::size_t k = made; k < made_.size(); ++k) {
      alive_[made_[k]] = 0;
    }
    made_.resize(made);
    living_ = living;
  }

  // Sets the values of the loop's symbols.
  void set_values(const NestStatement& loop, const PassClass& pass) {
    values_[loop.variable] = pass.size;
    if (const SymbolId met = met_symbol_[loop.variable]; met != kNoSymbol) {
      values_[met] = !mask_.full()                           ? pass.met
                     : nest_.root(loop.variable) == kExtentN ? values_[kExtentM]
                                                             : values_[kExtentN];
    }
  }
  // Returns the elements that a loop leaves out at the beginning.
  [[nodiscard]] Index begin_of(const NestStatement& loop) const {
    return loop.from ? std::max<Index>(loop.from->value(values_), 0) : 0;
  }
  // Returns the rows or keys that a loop visits now, before they are cut into blocks.
  [[nodiscard]] Ranges visited(const NestStatement& loop) const {
    Range whole = nest_.symbols[loop.range].kind == NestSymbol::Kind::variable
                      ? at_[loop.range]
                      : Range{0, values_[loop.range]};
    whole.begin = std::min(whole.begin + begin_of(loop), whole.end);
    if (whole.size() == 0) {
      return {};
    }
    if (loop.met_by == kNoSymbol) {
      return {whole};
    }
    return common(met_by(loop, at_[loop.met_by]), {whole});
  }
  // Returns the rows that a block of the outer loop meets, in whole blocks if the loop visits
  // these.
  [[nodiscard]] Ranges met_by(const NestStatement& loop, Range rows) const {
    const Ranges met = met_of(loop.met_by, rows);
    const Index block = loop.whole ? loop.size.value(values_) : 0;
    return block > 0 ? in_blocks(met, values_[loop.range], block) : met;
  }
  [[nodiscard]] Ranges met_of(SymbolId variable, Range rows) const {
    return nest_.root(variable) == kExtentN ? mask_.keys(rows) : transposed_.keys(rows);
  }

  // The loop inside the body that visits what blocks of this loop meet.
  void find_met(const std::vector<NestStatement>& list, SymbolId by,
                std::vector<const NestStatement*>& found, bool& positioned) const {
    for (const NestStatement& statement : list) {
      if (statement.kind == NestStatement::Kind::when) {
        const bool varies =
            nest_.uses_variable(statement.size) || nest_.uses_variable(statement.right);
        if (!varies && !holds(statement.comparison, statement.size.value(values_),
                              statement.right.value(values_))) {
          continue;
        }
        positioned = positioned || varies;
      }
      if (statement.kind == NestStatement::Kind::loop) {
        // A loop over pieces of a block needs its position, too.
        positioned = positioned || positioned_[statement.variable] ||
                     (statement.met_by != kNoSymbol && statement.range == by);
        if (statement.met_by == by) {
          found.push_back(&statement);
          // If two such loops are inside each other, the passes of each block multiply.
          std::vector<const NestStatement*> deeper;
          find_met(statement.body, by, deeper, positioned);
          positioned = positioned || !deeper.empty();
          // The sizes may depend on loops between the two.
          positioned = positioned || nest_.uses_variable(statement.size) ||
                       (statement.from && nest_.uses_variable(*statement.from));
        }
      }
      find_met(statement.body, by, found, positioned);
    }
  }

  // A loop with blocks that other loops meet. Blocks of one class are walked together, with all
  // that they meet, unless a loop inside needs the position of each.
  void walk_positioned(const NestStatement& loop, Index block, const Times& times) {
    std::vector<const NestStatement*> inner;
    bool one_by_one = false;
    find_met(loop.body, loop.variable, inner, one_by_one);
    const Ranges ranges = visited(loop);
    const Pieces pieces(ranges, block);
    if (pieces.size() == 0) {
      return;
    }
    note_trips(loop, pieces.size());
    steps_ += pieces.size();
    std::vector<Alone> alone;
    for (const NestStatement* met : inner) {
      alone.push_back(this->alone(*met, pieces));
    }
    const auto stand_at = [&](Index k) {
      at_[loop.variable] = pieces[k];
      for (std::size_t i = 0; i < inner.size(); ++i) {
        begun_[inner[i]->variable] = alone[i].begins[static_cast<std::size_t>(k)];
        ended_[inner[i]->variable] = alone[i].ends[static_cast<std::size_t>(k)];
      }
    };
    if (one_by_one) {
      for (Index k = 0; k < pieces.size(); ++k) {
        stand_at(k);
        PassClass pass{.size = pieces[k].size(), .first = k == 0, .last = k + 1 == pieces.size()};
        set_rows(loop, pieces[k], pass);
        walk_body({&loop, 1, k == 0}, pass, times);
      }
      return;
    }
    struct Group {
      Index blocks = 0;
      std::vector<std::map<PassClass, Words>> met;
    };
    std::map<PassClass, Group> groups;
    for (Index k = 0; k < pieces.size(); ++k) {
      stand_at(k);
      PassClass pass{.size = pieces[k].size()};
      if (asked_[loop.variable]) {
        pass.first = k == 0;
        pass.last = k + 1 == pieces.size();
      }
      set_rows(loop, pieces[k], pass);
      Group& group = groups[pass];
      ++group.blocks;
      group.met.resize(inner.size());
      set_values(loop, pass);
      for (std::size_t i = 0; i < inner.size(); ++i) {
        const Index size = inner[i]->size.value(values_);
        if (size > 0) {  // else the walk will refuse it
          Index trips = 0;
          each_met(*inner[i], size, [&](const PassClass& of, Index passes) {
            group.met[i][of] += passes;
            trips += passes;
          });
          note_trips(*inner[i], trips);
        }
      }
    }
    bool is_first = true;
    for (const auto& [pass, group] : groups) {
      for (std::size_t i = 0; i < inner.size(); ++i) {
        met_[inner[i]->variable] = PassClasses(group.met[i].begin(), group.met[i].end());
      }
      walk_body({&loop, group.blocks, std::exchange(is_first, false)}, pass,
                {.base = times.all(), .group = Words(group.blocks), .rest = 1});
      for (const NestStatement* met : inner) {
        met_[met->variable].reset();
      }
    }
  }

  // A loop over what an outer block meets.
  void walk_met(const NestStatement& loop, Index block, const Times& times) {
    bool is_first = true;
    if (!met_[loop.variable]) {
      PassClasses classes;
      Index trips = 0;
      each_met(loop, block, [&](const PassClass& pass, Index passes) {
        classes.emplace_back(pass, passes);
        trips += passes;
      });
      note_trips(loop, trips);
      for (const auto& [pass, passes] : classes) {
        walk_body({&loop, passes, std::exchange(is_first, false)}, pass,
                  {times.base, times.group, times.rest * passes});
      }
      return;
    }
    const PassClasses classes = *met_[loop.variable];
    for (const auto& [pass, passes] : classes) {
      walk_body({&loop, passes, std::exchange(is_first, false)}, pass,
                {.base = times.base * times.rest * passes, .group = 1, .rest = 1});
    }
  }

  // Visits the passes of such a loop for the outer block where it is.
  template <class Visit>
  void each_met(const NestStatement& loop, Index block, const Visit& visit) const {
    const Ranges ranges = visited(loop);
    for (const Range range : ranges) {
      if (!rowwise_[loop.variable] && ranges.size() == 1) {
        each_class(range.size(), block, asked_[loop.variable], visit);
      } else {
        each_piece(loop, range, block, range == ranges.front(), range == ranges.back(), visit);
      }
    }
  }
  // The same for one of several ranges. Pieces differ from their neighbours only at the ends of the
  // range, and where the rows begin or end that no other outer block meets.
  template <class Visit>
  void each_piece(const NestStatement& loop, Range range, Index block, bool first, bool last,
                  const Visit& visit) const {
    const Index pieces = ceil_div(range.size(), block);
    std::vector<Index> apart{0, pieces - 1};
    const auto note = [&](const Ranges& rows) {
      for (const Range part : common(rows, {range})) {
        apart.push_back((part.begin - range.begin) / block);
        apart.push_back((part.end - 1 - range.begin) / block);
      }
    };
    if (rowwise_[loop.variable]) {
      note(begun_.at(loop.variable));
      note(ended_.at(loop.variable));
    }
    std::ranges::sort(apart);
    apart.erase(std::unique(apart.begin(), apart.end()),
                apart.end());  // clang 14 lacks ranges here
    const auto at = [&](Index piece, Index passes) {
      const Range rows{range.begin + piece * block,
                       std::min(range.begin + (piece + 1) * block, range.end)};
      PassClass pass{.size = rows.size()};
      if (asked_[loop.variable]) {
        pass.first = first && piece == 0;
        pass.last = last && piece + 1 == pieces;
      }
      set_rows(loop, rows, pass);
      visit(pass, passes);
    };
    for (std::size_t k = 0; k < apart.size(); ++k) {
      at(apart[k], 1);
      if (k + 1 < apart.size() && apart[k + 1] > apart[k] + 1) {
        at(apart[k] + 1, apart[k + 1] - apart[k] - 1);
      }
    }
  }

  // The rows that each block meets and no earlier block does, and the same for later blocks.
  struct Alone {
    std::vector<Ranges> begins, ends;
  };
  [[nodiscard]] Alone alone(const NestStatement& inner, const Pieces& pieces) const {
    const auto blocks = static_cast<std::size_t>(pieces.size());
    Alone all{std::vector<Ranges>(blocks), std::vector<Ranges>(blocks)};
    if (!rowwise_[inner.variable]) {
      return all;
    }
    const auto fill = [&](std::vector<Ranges>& to, Index from, Index step) {
      Ranges seen;
      for (Index k = from; k >= 0 && k < pieces.size(); k += step) {
        Ranges now = met_by(inner, pieces[k]);
        to[static_cast<std::size_t>(k)] = without(now, seen);
        seen = united(seen, now);
      }
    };
    fill(all.begins, 0, 1);
    fill(all.ends, pieces.size() - 1, -1);
    return all;
  }
  static Ranges united(const Ranges& a, const Ranges& b) {
    Ranges all = without(a, b);
    all.insert(all.end(), b.begin(), b.end());
    std::ranges::sort(all, {}, &Range::begin);
    Ranges joined;
    for (const Range range : all) {
      if (!joined.empty() && joined.back().end == range.begin) {
        joined.back().end = range.end;
      } else {
        joined.push_back(range);
      }
    }
    return joined;
  }
  // Sets the rows of a piece that no earlier, and no later, outer block meets, and what it meets.
  void set_rows(const NestStatement& loop, Range piece, PassClass& pass) const {
    if (rowwise_[loop.variable]) {
      pass.begins = size_of(common(begun_.at(loop.variable), {piece}));
      pass.ends = size_of(common(ended_.at(loop.variable), {piece}));
    }
    if (met_symbol_[loop.variable] != kNoSymbol) {
      pass.met = size_of(met_of(loop.variable, piece));
    }
  }

  const TextNest& nest_;
  const Mask mask_;
  Mask transposed_;
  const Index sum_words_;
  std::vector<PhaseCost>& phases_;

  // By variable. asked_: a condition names its first or last pass. positioned_: its blocks are
  // walked by position. rowwise_: a condition selects rows of its blocks.
  std::vector<bool> asked_, positioned_, rowwise_;

  std::vector<const NestStatement*> left_out_;    // loops
  std::vector<std::vector<std::size_t>> around_;  // by phase: the phases around it
  std::vector<bool> entered_;                     // by phase
  std::size_t phase_ = 0;                         // the innermost one
  std::vector<Moved> moved_;                      // by statement
  Index steps_ = 0;

  std::vector<Index> values_;
  std::vector<PassClass> passes_;                // of the loops around
  std::vector<Range> at_;                        // of positioned loops
  std::map<SymbolId, Ranges> begun_, ended_;     // of loops over what an outer block meets
  std::vector<std::optional<PassClasses>> met_;  // by all blocks that are walked together
  std::vector<SymbolId> met_symbol_;             // by variable: the symbol of met(I), if any
  std::vector<Inside> inside_;                   // the loops around
  std::vector<Words> alive_;                     // words of the living tiles
  std::vector<std::size_t> made_;                // tiles, in the order in which they were made
  Words living_;
};

namespace {

// Returns a tile as a loop nest shows it: "S_IJ", or "Q" if no loop chooses it.
std::string text_of(const TextNest& nest, const TextTile& tile) {
  std::string chosen;
  for (const NestIndex& index : tile.indices) {
    if (index.kind == NestIndex::Kind::block || index.kind == NestIndex::Kind::each) {
      chosen += nest.symbols[index.symbol].name;
    }
  }
  return nest.tile_names[tile.name] + (chosen.empty() ? "" : "_" + chosen);
}

std::string text_of(const TextNest& nest, const std::vector<NestCondition>& conditions) {
  std::string text;
  for (const NestCondition& condition : conditions) {
    text += std::string(text.empty() ? "" : " and") + (condition.negated ? " unless " : " ") +
            (condition.first ? "first " : "last ") + nest.symbols[condition.variable].name;
  }
  return text;
}

}  // namespace

NestCounter::NestCounter(const TextNest& nest, const Mask& mask, Index sum_words)
    : walk_(std::make_unique<Walk>(nest, mask, sum_words, phases_)) {}
NestCounter::~NestCounter() = default;

const std::vector<PhaseCost>& NestCounter::phases(const std::vector<Index>& values) {
  walk_->count(values);
  return phases_;
}

void NestCounter::only_with(const std::vector<SymbolId>& blocks) {
  walk_->only_with(blocks);
}
bool NestCounter::entered(std::size_t phase) const {
  return walk_->entered(phase);
}
Index NestCounter::steps() const {
  return walk_->steps();
}

NestWords NestCounter::total(const std::vector<Index>& values) {
  NestWords all;
  for (const PhaseCost& phase : phases(values)) {
    all.words += phase.reads + phase.writes;
    all.peak = std::max(all.peak, phase.peak);
  }
  return all;
}

std::vector<PhaseCost> count(const TextNest& nest, const NestSizes& sizes) {
  NestCounter counter(nest, sizes.mask, sizes.sum_words);
  std::vector<PhaseCost> all = counter.phases(values_of(nest, sizes));
  // As on a machine, a phase around others is left out if it moves no words itself. Its words count
  // if no other phase has such a peak.
  const auto is_own = [&](std::size_t k) {
    const PhaseCost& phase = all[k];
    bool has_inner = false;
    for (std::size_t inner = 0; inner < all.size(); ++inner) {
      has_inner |= counter.entered(inner) && all[inner].path.starts_with(phase.path + "/");
    }
    return phase.reads + phase.writes + phase.flops > Words(0) || (k > 0 && !has_inner);
  };
  Words peak;
  for (std::size_t k = 0; k < all.size(); ++k) {
    peak = counter.entered(k) && is_own(k) ? std::max(peak, all[k].peak) : peak;
  }
  std::vector<PhaseCost> phases;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (counter.entered(k) && (is_own(k) || all[k].peak > peak)) {
      phases.push_back(all[k]);
    }
  }
  return phases;
}

namespace {

// Writes the lines of a list of statements.
class Lines {
 public:
  Lines(const TextNest& nest, const NestCounter& counter, bool masked)
      : nest_(nest), counter_(counter), masked_(masked), has_texts_(has_texts(nest.statements)) {}

  Nest all() {
    std::vector<Living> stay;
    write(nest_.statements, 0, stay);
    return std::move(lines_);
  }

 private:
  struct Living {
    std::size_t tile;
    NestLine::Stay stay;
  };

  static bool has_texts(const std::vector<NestStatement>& list) {
    return std::ranges::any_of(list, [](const NestStatement& statement) {
      return statement.kind == NestStatement::Kind::text || has_texts(statement.body);
    });
  }

  // `stay`: the living tiles that were made in this body.
  void write(const std::vector<NestStatement>& list, Index depth, std::vector<Living>& stay) {
    for (const NestStatement& statement : list) {
      NestLine line;
      line.phase = nest_.phases[statement.phase];
      line.depth = depth;
      switch (statement.kind) {
        case NestStatement::Kind::phase:
        case NestStatement::Kind::when:
          write(statement.body, depth, stay);
          told_ = lines_.size();
          break;
        case NestStatement::Kind::flops:
          break;
        case NestStatement::Kind::drop:
          std::erase_if(stay, [&](const Living& living) {
            return counter_.happened(statement) &&
                   std::ranges::find(statement.tiles, living.tile, &TextTile::name) !=
                       statement.tiles.end();
          });
          break;
        case NestStatement::Kind::loop:
          loop(statement, std::move(line), stay);
          told_ = lines_.size();
          break;
        case NestStatement::Kind::text:
          text(statement, std::move(line));
          break;
        case NestStatement::Kind::read:
        case NestStatement::Kind::make:
        case NestStatement::Kind::index:
          step(statement, std::move(line), stay);
          break;
        case NestStatement::Kind::write:
          step(statement, std::move(line), stay);
          told_ = lines_.size();
      }
    }
  }

  void loop(const NestStatement& statement, NestLine line, const std::vector<Living>& stay) {
    line.kind = NestLine::Kind::loop;
    if (statement.phase == 0 && nest_.phases.size() > 1) {
      line.phase = "";  // around phases
    }
    line.text = "for " + nest_.symbols[statement.variable].name + " in " + over(statement.range);
    if (masked_ && statement.met_by != kNoSymbol) {
      line.text += " met by " + nest_.symbols[statement.met_by].name;
    }
    std::tie(line.trips, line.block) = counter_.passes(statement);
    for (const Living& living : stay) {
      line.stays.push_back(living.stay);
    }
    if (line.trips > 0) {
      lines_.push_back(std::move(line));
      told_ = lines_.size();
      std::vector<Living> inside;
      write(statement.body, lines_.back().depth + 1, inside);
    }
  }

  // Returns the name of an extent in this problem.
  [[nodiscard]] std::string over(SymbolId range) const {
    const bool is_product = nest_.pass == Pass::product;
    const bool has_queries = nest_.pass && !is_product;
    return is_product && range == kExtentN    ? "rows"
           : is_product && range == kExtentM  ? "columns"
           : is_product && range == kExtentD  ? "depth"
           : has_queries && range == kExtentN ? "queries"
           : has_queries && range == kExtentM ? "keys"
                                              : nest_.symbols[range].name;
  }

  // What is computed has the words of the tiles that were read and made just above, instead of
  // their lines.
  void text(const NestStatement& statement, NestLine line) {
    if (!counter_.happened(statement)) {
      return;
    }
    line.text = statement.text;
    for (; lines_.size() > told_ && lines_.back().phase == line.phase; lines_.pop_back()) {
      line.reads += lines_.back().reads;
      line.moves.insert(line.moves.begin(), lines_.back().moves.begin(), lines_.back().moves.end());
    }
    lines_.push_back(std::move(line));
    told_ = lines_.size();
  }

  void step(const NestStatement& statement, NestLine line, std::vector<Living>& stay) {
    const bool makes = statement.kind == NestStatement::Kind::make;
    const bool writes = statement.kind == NestStatement::Kind::write;
    line.text = makes ? "new" : writes ? "write" : "read";
    const std::vector<MovedTile> moved = counter_.tiles(statement);
    for (std::size_t k = 0; k < statement.tiles.size(); ++k) {
      const TextTile& tile = statement.tiles[k];
      const std::string name = text_of(nest_, tile);
      line.text += (k == 0 ? " " : ", ") + (writes ? text_of(nest_, statement.targets[k]) : name);
      if (!makes && k < moved.size()) {
        const std::size_t matrix =
            statement.targets.empty() ? tile.name : statement.targets[k].name;
        if (writes) {
          line.write(nest_.tile_names[matrix], moved[k].moved);
        } else {
          line.read(nest_.tile_names[matrix], moved[k].moved);
        }
      }
      const auto known = std::ranges::find(stay, tile.name, &Living::tile);
      if (!writes && statement.kind != NestStatement::Kind::index && k < moved.size() &&
          moved[k].largest > Words(0)) {
        if (known == stay.end()) {
          stay.push_back({tile.name, {name, moved[k].largest}});
        } else {  // read in some passes, made in others
          known->stay.words = std::max(known->stay.words, moved[k].largest);
        }
      }
    }
    line.text += text_of(nest_, statement.conditions);
    if (!(makes && has_texts_) &&
        std::ranges::any_of(moved, [](const MovedTile& its) { return its.largest > Words(0); })) {
      lines_.push_back(std::move(line));
    }
  }

  const TextNest& nest_;
  const NestCounter& counter_;
  const bool masked_;
  const bool has_texts_;  // they say what is made
  Nest lines_;
  std::size_t told_ = 0;  // lines that no text replaces
};

}  // namespace

std::pair<Index, Index> NestCounter::passes(const NestStatement& loop) const {
  const auto& moved = walk_->moved(loop);
  return {moved.trips, moved.block};
}
bool NestCounter::happened(const NestStatement& statement) const {
  return walk_->moved(statement).passes > Words(0);
}
std::vector<MovedTile> NestCounter::tiles(const NestStatement& statement) const {
  return walk_->moved(statement).tiles;
}

Nest lines(const TextNest& nest, const NestSizes& sizes) {
  NestCounter counter(nest, sizes.mask, sizes.sum_words);
  static_cast<void>(counter.phases(values_of(nest, sizes)));
  return Lines(nest, counter, !sizes.mask.full()).all();
}

}  // namespace redblue
