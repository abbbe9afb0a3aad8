#include "tests/support/nest_interpreter.hpp"

#include <algorithm>
#include <cstddef>

namespace redblue {
namespace {

class NestInterpreter {
 public:
  // Thrown when a run is too long, has a block that is not positive, or is not defined.
  struct Refused {};
  struct Conditions {  // those that hold row by row, or block by block, of one index; and the
                       // others
    const NestCondition* of_met = nullptr;
    std::size_t index = 0;
    bool whole = false, others = true;
  };

  NestInterpreter(const TextNest& nest, const NestSizes& sizes, const PairTable* live, Index steps)
      : nest_(nest),
        live_(live),
        mask_(sizes.mask),
        sum_words_(sizes.sum_words),
        steps_(steps),
        loops_(nest.symbols.size()),
        cut_at_(nest.symbols.size(), kNoSymbol) {
    const NestExtents& of = sizes.extents;
    const std::map<std::string, Index> extents = {{"n", of.n},
                                                  {"m", of.m},
                                                  {"d", of.d},
                                                  {"dv", of.dv},
                                                  {"heads", of.heads},
                                                  {"kv_heads", of.kv_heads},
                                                  {"group", of.group},
                                                  {"M", of.M},
                                                  {"masked", sizes.mask.full() ? 0 : 1},
                                                  {"softmax", sizes.softmax ? 1 : 0}};
    for (const NestSymbol& symbol : nest.symbols) {
      values_.push_back(symbol.kind == NestSymbol::Kind::extent ? extents.at(symbol.name) : 0);
    }
    // A size in the head names only blocks of lines above it. In a formula a block size is the
    // number that was given: a loop cuts its blocks, not the name.
    for (const NestBlock& block : nest.blocks) {
      const std::string& name = nest.symbols[block.symbol].name;
      Index& size = values_[block.symbol];
      size = sizes.blocks.contains(name) ? sizes.blocks[name] : value(*block.size);
      if (size < (is_step(nest.statements, block.symbol) ? 1 : 0)) {
        throw Refused();
      }
      cut_at_[block.symbol] = block.of;
    }
  }

  [[nodiscard]] bool overran() const { return overruns_; }

  InterpretedPhases run() {
    phases_.resize(nest_.phases.size());
    phase_ = phases_.size();
    run(nest_.statements);
    hold_around();
    InterpretedPhases found;
    for (std::size_t k = 0; k < phases_.size(); ++k) {
      if (phases_[k] != InterpretedPhase()) {
        found[nest_.phases[k]] = phases_[k];
      }
    }
    return found;
  }

 private:
  struct Loop {
    Ranges passes;
    std::size_t at = 0;  // the current pass
  };
  struct Living {
    std::size_t name;
    Index words;
  };

  [[nodiscard]] Range block(SymbolId variable) const {
    return loops_[variable].passes[loops_[variable].at];
  }
  [[nodiscard]] bool is_variable(SymbolId symbol) const {
    return nest_.symbols[symbol].kind == NestSymbol::Kind::variable;
  }
  [[nodiscard]] Index value(SymbolId symbol) const {
    if (nest_.symbols[symbol].kind == NestSymbol::Kind::met) {
      return met(nest_.symbols[symbol].range);
    }
    return is_variable(symbol) ? block(symbol).size() : values_[symbol];
  }
  // The number of queries or keys that the current block of a loop meets.
  [[nodiscard]] Index met(SymbolId variable) const {
    const bool of_queries = !is_queries(variable);
    const auto has_name = [&](const NestSymbol& symbol) {
      return symbol.name == (of_queries ? "n" : "m");
    };
    const auto extent = std::ranges::find_if(nest_.symbols, has_name) - nest_.symbols.begin();
    Index count = 0;
    for (Index k = 0; k < values_[static_cast<std::size_t>(extent)]; ++k) {
      count += meets(k, of_queries, block(variable)) ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] Index value(const NestSize& size) const {
    using Op = NestSize::Op;
    std::vector<Index> stack;
    for (const NestSize::Step& step : size.steps) {
      if (step.op == Op::number) {
        stack.push_back(step.number);
      } else if (step.op == Op::symbol) {
        stack.push_back(value(static_cast<SymbolId>(step.number)));
      } else if (step.op == Op::choose) {
        const std::size_t at = stack.size() - 4;
        const bool is = compare(static_cast<Comparison>(step.number), stack[at], stack[at + 1]);
        stack[at] = is ? stack[at + 2] : stack[at + 3];
        stack.resize(at + 1);
      } else {
        const Index b = stack.back();
        stack.pop_back();
        const Index a = stack.back();
        const bool divides = step.op == Op::divide || step.op == Op::ceil;
        if (divides && (b < 1 || a < 0)) {
          throw Refused();
        }
        stack.back() = step.op == Op::add        ? a + b
                       : step.op == Op::subtract ? a - b
                       : step.op == Op::multiply ? a * b
                       : step.op == Op::divide   ? a / b
                       : step.op == Op::ceil     ? a / b + (a % b > 0 ? 1 : 0)
                       : step.op == Op::min      ? std::min(a, b)
                                                 : std::max(a, b);
      }
    }
    return stack.back();
  }

  static bool compare(Comparison comparison, Index a, Index b) {
    return comparison == Comparison::less      ? a < b
           : comparison == Comparison::at_most ? a <= b
           : comparison == Comparison::equal   ? a == b
           : comparison == Comparison::unequal ? a != b
           : comparison == Comparison::more    ? a > b
                                               : a >= b;
  }
  // A size that counts elements.
  [[nodiscard]] Index elements(const NestSize& size) const {
    const Index words = value(size);
    if (words < 0) {
      throw Refused();
    }
    return words;
  }
  static bool is_step(const std::vector<NestStatement>& in, SymbolId block) {
    return std::ranges::any_of(in, [&](const NestStatement& statement) {
      return (statement.kind == NestStatement::Kind::loop && statement.size.uses(block)) ||
             is_step(statement.body, block);
    });
  }

  // The extent that a variable runs over, through all loops over pieces.
  [[nodiscard]] SymbolId whole(SymbolId symbol) const {
    while (is_variable(symbol)) {
      symbol = loop_of(nest_.statements, symbol)->range;
    }
    return symbol;
  }
  static const NestStatement* loop_of(const std::vector<NestStatement>& in, SymbolId variable) {
    for (const NestStatement& statement : in) {
      if (statement.kind == NestStatement::Kind::loop && statement.variable == variable) {
        return &statement;
      }
      if (const NestStatement* inner = loop_of(statement.body, variable)) {
        return inner;
      }
    }
    return nullptr;
  }

  // Whether row k of a loop over n (or m) forms a live pair with one of the keys (or queries).
  [[nodiscard]] bool meets(Index k, bool is_query, Range others) const {
    for (Index other = others.begin; other < others.end; ++other) {
      if (live_ == nullptr || (is_query ? live_->at(k, other) : live_->at(other, k))) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool meets(Range rows, SymbolId range, Range others) const {
    bool met = false;
    for (Index k = rows.begin; k < rows.end; ++k) {
      met |= meets(k, is_queries(range), others);
    }
    return met;
  }
  [[nodiscard]] bool is_queries(SymbolId symbol) const {
    return nest_.symbols[whole(symbol)].name == "n";
  }

  [[nodiscard]] Ranges visited(const NestStatement& loop) const {
    Range all = is_variable(loop.range) ? block(loop.range) : Range{0, value(loop.range)};
    if (loop.from) {
      all.begin += elements(*loop.from);
      if (all.begin >= all.end) {
        return {};
      }
    }
    if (loop.met_by == kNoSymbol || loop.whole) {
      return {all};
    }
    Ranges met;
    for (Index k = all.begin; k < all.end; ++k) {
      if (meets(k, is_queries(loop.range), block(loop.met_by))) {
        if (met.empty() || met.back().end != k) {
          met.push_back({k, k});
        }
        met.back().end = k + 1;
      }
    }
    return met;
  }

  void run(const std::vector<NestStatement>& body) {
    for (const NestStatement& statement : body) {
      if (--steps_ < 0) {
        throw Refused();
      }
      if (statement.kind == NestStatement::Kind::loop) {
        run_loop(statement);
      } else if (statement.kind == NestStatement::Kind::phase) {
        run(statement.body);
      } else if (statement.kind == NestStatement::Kind::when) {
        if (compare(statement.comparison, value(statement.size), value(statement.right))) {
          run(statement.body);
        }
      } else if (statement.kind != NestStatement::Kind::text &&
                 (statement.kind != NestStatement::Kind::drop || happens(statement))) {
        enter(statement.phase);
        run_leaf(statement);
        hold(phase_);
      }
    }
  }
  // As on a machine, words that live when a phase begins or continues count towards its peak.
  void enter(std::size_t phase) {
    if (phase != phase_) {
      hold_around();
      phase_ = phase;
      hold(phase);
      hold_around();
    }
  }
  void hold_around() {
    for (std::size_t outer = 0; outer < phases_.size() && phase_ < phases_.size(); ++outer) {
      if (nest_.phases[phase_].starts_with(nest_.phases[outer] + "/")) {
        hold(outer);
      }
    }
  }
  [[nodiscard]] bool happens(const NestStatement& statement) const {
    return std::ranges::all_of(statement.conditions, [&](const auto& c) { return in_pass(c); });
  }
  void hold(std::size_t phase) {
    Index words = 0;
    for (const Living& tile : living_) {
      words += tile.words;
    }
    phases_[phase].peak = std::max(phases_[phase].peak, words);
  }

  void run_loop(const NestStatement& statement) {
    const Index size = value(statement.size);
    if (size < 1) {
      throw Refused();
    }
    Loop loop;
    for (const Range range : visited(statement)) {
      for (Index begin = range.begin; begin < range.end; begin += size) {
        const Range pass = {begin, std::min(begin + size, range.end)};
        if (!statement.whole || meets(pass, statement.range, block(statement.met_by))) {
          loop.passes.push_back(pass);
        }
      }
    }
    loops_[statement.variable] = loop;
    for (std::size_t pass = 0; pass < loop.passes.size(); ++pass) {
      loops_[statement.variable].at = pass;
      const std::vector<Living> before = living_;
      run(statement.body);
      living_ = before;  // tiles made in this pass end, and no others can
    }
  }

  void run_leaf(const NestStatement& statement) {
    InterpretedPhase& phase = phases_[statement.phase];
    if (statement.kind == NestStatement::Kind::flops) {
      phase.flops += value(statement.size);
      return;
    }
    if (statement.kind == NestStatement::Kind::index) {
      if (live_ != nullptr) {
        const SymbolId of = statement.tiles.front().met_by;
        const Mask mask = is_queries(of) ? mask_ : mask_.transposed();
        phase.reads += mask.index_words(block(of)).value();
        living_.push_back({statement.tiles.front().name, mask.index().live()});
      }
      return;
    }
    for (std::size_t k = 0; k < statement.tiles.size(); ++k) {
      const TextTile& tile = statement.tiles[k];
      if (statement.kind == NestStatement::Kind::drop) {
        std::erase_if(living_, [&](const Living& other) { return other.name == tile.name; });
        continue;
      }
      const Index words = words_under(tile, statement.conditions);
      overruns_ |= !statement.targets.empty() && words > 0 && overruns(statement.targets[k]);
      const Index moved = tile.in_part() ? words_of_part(tile) : words;
      if (statement.kind == NestStatement::Kind::read) {
        phase.reads += moved;
      }
      if (statement.kind == NestStatement::Kind::write) {
        phase.writes += moved;
      } else {
        living_.push_back({tile.name, words});
      }
    }
  }

  // The live pairs of a tile, or the words of the rows that another loop's block meets.
  [[nodiscard]] Index words_of_part(const TextTile& tile) const {
    const auto range = [&](const NestIndex& index) {
      return index.kind == NestIndex::Kind::block ? block(index.symbol)
                                                  : Range{0, value(index.symbol)};
    };
    Index words = tile.sum ? sum_words_ : 1;
    if (tile.live) {
      Index pairs = 0;
      const Range rows = range(tile.indices[0]);
      for (Index row = rows.begin; row < rows.end; ++row) {
        const Range cols = range(tile.indices[1]);
        for (Index col = cols.begin; col < cols.end; ++col) {
          pairs += meets(row, is_queries(tile.indices[0].symbol), {col, col + 1}) ? 1 : 0;
        }
      }
      return words * pairs;
    }
    for (const NestIndex& index : tile.indices) {
      const bool by_name =
          index.kind == NestIndex::Kind::block || index.kind == NestIndex::Kind::extent;
      const std::string root = by_name ? nest_.symbols[whole(index.symbol)].name : "";
      if (root == (is_queries(tile.met_by) ? "m" : "n")) {
        Index met = 0;
        for (Index k = range(index).begin; k < range(index).end; ++k) {
          met += meets(k, root == "n", block(tile.met_by)) ? 1 : 0;
        }
        words *= met;
      } else {
        words *= words_under({tile.name, {index}, false}, {});
      }
    }
    return words;
  }

  // Whether an index is larger than its matrix.
  [[nodiscard]] bool overruns(const TextTile& target) const {
    const std::vector<NestIndex>& extents = nest_.matrices[target.name].extents;
    for (std::size_t k = 0; k < extents.size(); ++k) {
      const NestIndex& index = target.indices[k];
      const Index size = index.kind == NestIndex::Kind::number ? index.number
                         : index.kind == NestIndex::Kind::part ? part(index.size)
                                                               : 0;
      if (size > (extents[k].kind == NestIndex::Kind::extent ? value(extents[k].symbol)
                                                             : extents[k].number)) {
        return true;
      }
    }
    return false;
  }

  // The words of the part of a tile for which the conditions hold.
  [[nodiscard]] Index words_under(const TextTile& tile,
                                  const std::vector<NestCondition>& conditions) const {
    const Conditions under = sorted(tile, conditions);
    Index words = under.others ? tile.sum ? sum_words_ : 1 : 0;
    for (std::size_t k = 0; k < tile.indices.size(); ++k) {
      const NestIndex& index = tile.indices[k];
      if (under.of_met != nullptr && under.index == k) {
        words *= rows_under(index.symbol, *under.of_met, under.whole);
      } else if (index.kind == NestIndex::Kind::number) {
        words *= index.number;
      } else if (index.kind == NestIndex::Kind::part) {
        words *= part(index.size);
      } else if (index.kind != NestIndex::Kind::each) {
        words *= value(index.symbol);
      }
    }
    return words;
  }
  // A name alone that is a block size is cut at its extent.
  [[nodiscard]] Index part(const NestSize& size) const {
    const Index words = elements(size);
    const SymbolId alone = size.steps.size() == 1 && size.steps[0].op == NestSize::Op::symbol
                               ? static_cast<SymbolId>(size.steps[0].number)
                               : kNoSymbol;
    const bool is_cut = alone != kNoSymbol && cut_at_[alone] != kNoSymbol;
    return is_cut ? std::min(words, values_[cut_at_[alone]]) : words;
  }

  [[nodiscard]] bool in_pass(const NestCondition& condition) const {
    const Loop& loop = loops_[condition.variable];
    const bool is = condition.first ? loop.at == 0 : loop.at + 1 == loop.passes.size();
    return is != condition.negated;
  }
  // Under a mask one condition of a tile may hold for a part of a loop's block. The page does not
  // say what two of them mean, nor one for a piece of the block.
  [[nodiscard]] Conditions sorted(const TextTile& tile,
                                  const std::vector<NestCondition>& conditions) const {
    Conditions found;
    for (const NestCondition& condition : conditions) {
      bool by_rows = false;
      for (std::size_t k = 0; live_ != nullptr && k < tile.indices.size(); ++k) {
        if (tile.indices[k].kind == NestIndex::Kind::block &&
            is_met_by(tile.indices[k].symbol, condition.variable)) {
          if (found.of_met != nullptr) {
            throw Refused();
          }
          by_rows = true;
          found.of_met = &condition;
          found.index = k;
          found.whole = loop_of(nest_.statements, tile.indices[k].symbol)->whole;
        }
      }
      found.others = found.others && (by_rows || in_pass(condition));
    }
    return found;
  }
  [[nodiscard]] bool is_met_by(SymbolId variable, SymbolId outer) const {
    const NestStatement* loop = loop_of(nest_.statements, variable);
    if (loop->met_by == outer) {
      return true;
    }
    while (is_variable(loop->range)) {
      loop = loop_of(nest_.statements, loop->range);
      if (loop->met_by == outer) {
        throw Refused();
      }
    }
    return false;
  }
  // The rows that no earlier (or later) block of the condition's loop meets; or the others. Whole:
  // all rows of the block or none.
  [[nodiscard]] Index rows_under(SymbolId variable, const NestCondition& condition,
                                 bool whole) const {
    const Loop& outer = loops_[condition.variable];
    Index rows = 0, all_met = 0;
    for (Index k = block(variable).begin; k < block(variable).end; ++k) {
      bool met = false;
      for (std::size_t pass = 0; pass < outer.passes.size(); ++pass) {
        met |= (condition.first ? pass < outer.at : pass > outer.at) &&
               meets(k, is_queries(variable), outer.passes[pass]);
      }
      rows += met == condition.negated ? 1 : 0;
      all_met += met ? 1 : 0;
    }
    if (whole) {
      return (all_met > 0) == condition.negated ? block(variable).size() : 0;
    }
    return rows;
  }

  const TextNest& nest_;
  const PairTable* live_;
  const Mask mask_;  // for its indices alone
  Index sum_words_, steps_;
  std::vector<Index> values_;     // of extents and blocks
  std::vector<Loop> loops_;       // by variable
  std::vector<SymbolId> cut_at_;  // the extents of block sizes
  std::vector<Living> living_;
  std::vector<InterpretedPhase> phases_;
  std::size_t phase_ = 0;  // the innermost one
  bool overruns_ = false;
};

}  // namespace

std::optional<InterpretedPhases> interpret(const TextNest& nest, const NestSizes& sizes,
                                           const PairTable* live, Index most_steps, bool* overran) {
  try {
    NestInterpreter interpreter(nest, sizes, live, most_steps);
    const InterpretedPhases phases = interpreter.run();
    if (overran != nullptr) {
      *overran = interpreter.overran();
    }
    return phases;
  } catch (const NestInterpreter::Refused&) {
    return std::nullopt;
  }
}

Index words_of(const InterpretedPhases& phases) {
  Index words = 0;
  for (const auto& [path, phase] : phases) {
    words += phase.reads + phase.writes;
  }
  return words;
}

Index peak_of(const InterpretedPhases& phases) {
  Index peak = 0;
  for (const auto& [path, phase] : phases) {
    peak = std::max(peak, phase.peak);
  }
  return peak;
}

}  // namespace redblue
