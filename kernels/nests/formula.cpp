#include "kernels/nests/formula.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace redblue {
namespace {

using Kind = NestStatement::Kind;

// The conditions known so far, and what follows from them. Extents and steps of loops are at least
// 1, and so are numbers of blocks.
class Facts {
 public:
  Facts(const TextNest& nest, const Atoms& atoms) : atoms_(&atoms) {
    positive_.assign(nest.symbols.size(), true);
    for (const NestBlock& block : nest.blocks) {
      positive_[block.symbol] = block.is_step;
    }
  }

  [[nodiscard]] std::vector<SizeCondition> all() const {
    std::vector<SizeCondition> conditions;
    std::ranges::transform(all_, std::back_inserter(conditions), &Fact::condition);
    return conditions;
  }

  [[nodiscard]] bool prove(const SizeCondition& condition) const {
    return prove(condition, all_.size());
  }
  void add(const SizeCondition& condition) {
    if (!prove(condition)) {
      all_.emplace_back(condition);
    }
  }
  // Removes conditions that follow from the others.
  void reduce() {
    for (std::size_t k = all_.size(); k-- > 0;) {
      if (prove(all_[k].condition, k)) {
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
  }

  // Whether a polynomial is at least 0. A negative term needs positive terms that are as large.
  [[nodiscard]] bool at_least_0(const Polynomial& of, std::size_t without) const {
    Polynomial positive;
    for (const auto& [monomial, coefficient] : of) {
      if (coefficient > 0) {
        positive[monomial] = coefficient;
      }
    }
    for (const auto& [monomial, coefficient] : of) {
      Index missing = coefficient < 0 ? -coefficient : 0;
      for (auto& [large, left] : positive) {
        if (missing > 0 && left > 0 && covers(monomial, large, without)) {
          const Index part = std::min(missing, left);
          missing -= part;
          left -= part;
        }
      }
      if (missing > 0) {
        return false;
      }
    }
    return true;
  }
  // The same if sizes may compare as they do at `sizes`. Adds the comparisons that it needs.
  bool at_least_0(const Polynomial& of, const std::vector<Index>& sizes,
                  std::vector<SizeCondition>& needed) {
    assumed_ = &needed;
    sizes_ = &sizes;
    const bool is = at_least_0(of, all_.size());
    assumed_ = nullptr;
    return is;
  }
  [[nodiscard]] bool at_least_0(const Polynomial& of) const { return at_least_0(of, all_.size()); }

 private:
  // A condition as a polynomial that is at least 0.
  static Polynomial as_polynomial(const SizeCondition& condition) {
    return condition.right - condition.left - number(condition.is == Comparison::less ? 1 : 0);
  }
  static std::optional<AtomId> only_atom(const Polynomial& of) {
    const bool is = of.size() == 1 && of.begin()->first.size() == 1 && of.begin()->second == 1;
    return is ? std::optional(of.begin()->first.front()) : std::nullopt;
  }
  struct Fact {
    explicit Fact(const SizeCondition& its)
        : condition(its),
          difference(as_polynomial(its)),
          small(only_atom(its.left)),
          large(only_atom(its.right)) {}
    SizeCondition condition;
    Polynomial difference;
    std::optional<AtomId> small, large;  // if a side is an atom
  };
  [[nodiscard]] bool prove(const SizeCondition& condition, std::size_t without) const {
    const Polynomial difference = as_polynomial(condition);
    if (condition.is == Comparison::equal) {
      return difference.empty();
    }
    if (at_least_0(difference, without)) {
      return true;
    }
    for (std::size_t k = 0; k < all_.size(); ++k) {
      if (k != without && at_least_0(difference - all_[k].difference, without)) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool is_positive(AtomId atom) const {
    const Atom& its = (*atoms_)[atom];
    return its.kind == Atom::Kind::symbol ? positive_[its.symbol] : its.kind == Atom::Kind::rest;
  }
  // Whether a <= b is known for two atoms.
  [[nodiscard]] bool at_most(AtomId a, AtomId b, std::size_t without) const {
    if (a == b) {
      return true;
    }
    for (std::size_t k = 0; k < all_.size(); ++k) {
      if (k != without && all_[k].small == a && all_[k].large == b) {
        return true;
      }
    }
    if (assumed_ == nullptr || !is_size(a) || !is_size(b) || (*sizes_)[a] > (*sizes_)[b]) {
      return false;
    }
    const SizeCondition condition = {{{{a}, 1}}, Comparison::at_most, {{{b}, 1}}};
    if (std::ranges::find(*assumed_, condition) == assumed_->end()) {
      assumed_->push_back(condition);
    }
    return true;
  }
  [[nodiscard]] bool is_size(AtomId atom) const {
    return (*atoms_)[atom].kind == Atom::Kind::symbol;
  }
  // Whether each factor of `small` has a factor of `large` that is at least as large, and the
  // others are at least 1.
  [[nodiscard]] bool covers(const Monomial& small, Monomial large, std::size_t without) const {
    Monomial rest;
    for (const AtomId atom : small) {
      const auto found = std::ranges::find(large, atom);
      if (found != large.end()) {
        large.erase(found);
      } else {
        rest.push_back(atom);
      }
    }
    for (const AtomId atom : rest) {
      const auto found =
          std::ranges::find_if(large, [&](AtomId other) { return at_most(atom, other, without); });
      if (found == large.end()) {
        return false;
      }
      large.erase(found);
    }
    return std::ranges::all_of(large, [&](AtomId atom) { return is_positive(atom); });
  }

  const Atoms* atoms_;
  std::vector<SizeCondition>* assumed_ = nullptr;
  const std::vector<Index>* sizes_ = nullptr;
  std::vector<bool> positive_;
  std::vector<Fact> all_;
};

class Derivation {
 public:
  Derivation(const TextNest& nest, const NestSizes& sizes)
      : nest_(nest),
        sum_words_(number(sizes.sum_words)),
        result_{.atoms = Atoms(nest.symbols.size()),
                .names = {},
                .sizes = values_of(nest, sizes),
                .free = {},
                .whole = {},
                .conditions = {},
                .phases = {},
                .total = {.path = "total"}},
        atoms_(result_.atoms),
        facts_(nest, atoms_) {
    for (const NestSymbol& symbol : nest.symbols) {
      result_.names.push_back(symbol.name);
      values_.push_back(Atoms::symbol(values_.size()));
    }
    const std::vector<Index>& given = result_.sizes;
    for (const SymbolId heads : {kExtentHeads, kExtentKvHeads, kExtentGroup, kMasked, kSoftmax}) {
      values_[heads] = number(given[heads]);
    }
    if (given[kExtentDv] == given[kExtentD]) {
      values_[kExtentDv] = values_[kExtentD];
    }
    for (SymbolId symbol = 0; symbol < values_.size(); ++symbol) {
      if (nest.symbols[symbol].kind == NestSymbol::Kind::met) {  // all others, without a mask
        const bool of_queries = nest.root(nest.symbols[symbol].range) == kExtentN;
        values_[symbol] = values_[of_queries ? kExtentM : kExtentN];
      }
    }
    whole_.resize(values_.size());
    for (const NestBlock& block : nest.blocks) {
      if (!sizes.blocks.contains(nest.symbols[block.symbol].name)) {
        values_[block.symbol] = used(eval(*block.size));
      } else if (given[block.symbol] == given[block.of]) {
        values_[block.symbol] = values_[block.of];
        whole_[block.symbol] = block.of;
      }
    }
    alive_.resize(nest.tile_names.size());
    passes_.resize(nest.symbols.size());
    phases_.resize(nest.phases.size());
    asked_.resize(nest.symbols.size());
    find_asked(nest.statements);
  }

  NestFormula run(const std::vector<PhaseCost>& counted) {
    phase_ = phases_.size();
    walk(nest_.statements, number(1));
    leave();
    std::vector<Candidate> all;
    std::vector<PhaseFormula>& list = result_.phases;
    for (std::size_t k = 0; k < phases_.size(); ++k) {
      Phase& phase = phases_[k];
      if (std::ranges::find(counted, nest_.phases[k], &PhaseCost::path) == counted.end()) {
        // A phase that is not reported here may be at other sizes, for its peak.
        all.insert(all.end(), phase.peaks.begin(), phase.peaks.end());
        note({atoms_.expanded(phase.reads + phase.writes), Comparison::at_most, {}});
        continue;
      }
      list.push_back({.path = nest_.phases[k],
                      .reads = atoms_.expanded(phase.reads),
                      .writes = atoms_.expanded(phase.writes)});
      result_.total.reads = result_.total.reads + list.back().reads;
      result_.total.writes = result_.total.writes + list.back().writes;
      phase.peaks = largest(std::move(phase.peaks));
      all.insert(all.end(), phase.peaks.begin(), phase.peaks.end());
      list.back().peak = expanded(phase.peaks);
    }
    may_assume_ = false;  // comparisons of blocks of different phases say little
    result_.total.peak = expanded(largest(std::move(all)));
    facts_.reduce();
    for (const SizeCondition& condition : facts_.all()) {
      result_.conditions.push_back(
          {atoms_.expanded(condition.left), condition.is, atoms_.expanded(condition.right)});
    }
    find_free();
    return std::move(result_);
  }

 private:
  // A polynomial, and the conditions under which a size has this value.
  struct Sized {
    Polynomial is;
    std::vector<SizeCondition> where = {};
  };
  // Words that live at once. `needs`: the loops around have such passes. If they have none at the
  // given sizes, `happens` is false, and the words count only as something to rule out.
  struct Candidate {
    Polynomial words;
    bool happens = true;
    std::vector<SizeCondition> needs = {};
    friend bool operator==(const Candidate&, const Candidate&) = default;
  };
  struct Phase {
    Polynomial reads, writes;
    std::vector<Candidate> peaks;
  };
  struct Pass {
    bool first = true, last = true;
  };

  [[nodiscard]] Index at(const Polynomial& of) const { return atoms_.value(of, result_.sizes); }

  // Decides a comparison at the given sizes, and returns it as a condition that holds.
  std::pair<bool, SizeCondition> compared(const Polynomial& a, Comparison comparison,
                                          const Polynomial& b) const {
    const Index x = at(a), y = at(b);
    const bool is = redblue::holds(comparison, x, y);
    Comparison true_one = is ? comparison : opposite(comparison);
    if (true_one == Comparison::unequal) {
      true_one = x < y ? Comparison::less : Comparison::more;
    }
    if (true_one == Comparison::more) {
      return {is, {b, Comparison::less, a}};
    }
    if (true_one == Comparison::at_least) {
      return {is, {b, Comparison::at_most, a}};
    }
    return {is, {a, true_one, b}};
  }
  bool decide(const Polynomial& a, Comparison comparison, const Polynomial& b) {
    const auto [is, condition] = compared(a, comparison, b);
    note(condition);
    return is;
  }
  // Adds a condition in simple form: without common terms and factors.
  void note(SizeCondition condition) { facts_.add(simple(std::move(condition))); }
  [[nodiscard]] SizeCondition simple(SizeCondition condition) const {
    Polynomial left, right;
    Index common = 0;
    std::optional<Monomial> shared;
    for (const auto& [monomial, coefficient] : condition.right - condition.left) {
      (coefficient > 0 ? right : left)[monomial] = std::abs(coefficient);
      common = std::gcd(common, coefficient);
      Monomial both;
      std::ranges::set_intersection(shared ? *shared : monomial, monomial,
                                    std::back_inserter(both));
      shared = both;
    }
    const bool divides =
        shared && std::ranges::all_of(*shared, [](AtomId id) { return id < kExtents; });
    const auto divided = [&](const Polynomial& of) {
      Polynomial all;
      for (const auto& [monomial, coefficient] : of) {
        Monomial others;
        std::ranges::set_difference(monomial, divides ? *shared : Monomial(),
                                    std::back_inserter(others));
        all[others] = coefficient / common;
      }
      return all;
    };
    return of_blocks({divided(left), condition.is, divided(right)});
  }
  // Returns s < E for 1 < ceil(E/s), and E <= s for ceil(E/s) <= 1. Likewise for rounding down.
  [[nodiscard]] SizeCondition of_blocks(const SizeCondition& condition) const {
    const auto atom = [&](const Polynomial& of) -> const Atom* {
      const bool is = of.size() == 1 && of.begin()->first.size() == 1 && of.begin()->second == 1;
      return is ? &atoms_[of.begin()->first[0]] : nullptr;
    };
    const bool less = condition.is == Comparison::less;
    if (condition.is == Comparison::equal) {
      return condition;
    }
    if (const Atom* right = atom(condition.right)) {
      const auto left = as_number(condition.left);
      if (left && right->kind == Atom::Kind::ceil) {
        return {number(less ? *left : *left - 1) * right->b, Comparison::less, right->a};
      }
      if (left && right->kind == Atom::Kind::floor) {
        return {number(less ? *left + 1 : *left) * right->b, Comparison::at_most, right->a};
      }
    }
    if (const Atom* left = atom(condition.left)) {
      const auto right = as_number(condition.right);
      if (right && left->kind == Atom::Kind::ceil) {
        return {left->a, Comparison::at_most, number(less ? *right - 1 : *right) * left->b};
      }
      if (right && left->kind == Atom::Kind::floor) {
        return {left->a, Comparison::less, number(less ? *right : *right + 1) * left->b};
      }
    }
    return condition;
  }
  Polynomial used(const Sized& size) {
    for (const SizeCondition& condition : size.where) {
      note(condition);
    }
    return size.is;
  }

  // Returns the smaller or the larger one.
  Sized chosen(Atom::Kind kind, Sized a, const Sized& b) {
    const bool min = kind == Atom::Kind::min;
    a.where.insert(a.where.end(), b.where.begin(), b.where.end());
    if (!atoms_.has_rest(a.is) && !atoms_.has_rest(b.is)) {
      // If the two are equal, either order would do: take a known one.
      const SizeCondition ordered = {a.is, Comparison::at_most, b.is};
      const SizeCondition swapped = {b.is, Comparison::at_most, a.is};
      const Index x = at(a.is), y = at(b.is);
      const bool is = x < y || (x == y && !facts_.prove(simple(swapped)));
      a.where.push_back(is ? ordered : swapped);
      return {is == min ? a.is : b.is, a.where};
    }
    // The size of a last block should not be in a condition. A larger size without it may decide.
    for (const bool swapped : {false, true}) {
      const Polynomial& small = swapped ? b.is : a.is;
      const Polynomial& large = swapped ? a.is : b.is;
      const auto most = without_rest(small);
      if (most && !atoms_.has_rest(large) && at(*most) < at(large)) {
        a.where.push_back({*most, Comparison::at_most, large});
        return {min ? small : large, a.where};
      }
    }
    return {atoms_.function(kind, a.is, b.is), a.where};
  }
  std::optional<Polynomial> without_rest(const Polynomial& of) {
    return atoms_.without_rest(of, [&](Atom::Kind kind, const Polynomial& a, const Polynomial& b) {
      const bool chooses = kind == Atom::Kind::min || kind == Atom::Kind::max;
      return chooses ? used(chosen(kind, {a}, {b})) : atoms_.function(kind, a, b);
    });
  }
  Sized eval(const NestSize& size) {
    using Op = NestSize::Op;
    std::vector<Sized> stack;
    const auto pop = [&] {
      Sized top = std::move(stack.back());
      stack.pop_back();
      return top;
    };
    for (const auto [op, value] : size.steps) {
      if (op == Op::number) {
        stack.push_back({number(value)});
        continue;
      }
      if (op == Op::symbol) {
        stack.push_back({value_of(static_cast<SymbolId>(value))});
        continue;
      }
      if (op == Op::choose) {
        Sized no = pop(), yes = pop(), b = pop(), a = pop();
        auto [is, condition] = compared(a.is, static_cast<Comparison>(value), b.is);
        Sized result = is ? std::move(yes) : std::move(no);
        for (const Sized* part : {&a, &b}) {
          result.where.insert(result.where.end(), part->where.begin(), part->where.end());
        }
        result.where.push_back(std::move(condition));
        stack.push_back(std::move(result));
        continue;
      }
      const Sized b = pop();
      Sized a = pop();
      if (op == Op::min || op == Op::max) {
        stack.push_back(chosen(op == Op::min ? Atom::Kind::min : Atom::Kind::max, a, b));
        continue;
      }
      a.where.insert(a.where.end(), b.where.begin(), b.where.end());
      a.is =
          op == Op::add        ? a.is + b.is
          : op == Op::subtract ? a.is - b.is
          : op == Op::multiply
              ? a.is * b.is
              : atoms_.function(op == Op::ceil ? Atom::Kind::ceil : Atom::Kind::floor, a.is, b.is);
      stack.push_back(std::move(a));
    }
    return stack.back();
  }
  Polynomial value_of(SymbolId symbol) {
    if (whole_[symbol]) {
      const std::pair pair(symbol, *whole_[symbol]);
      if (std::ranges::find(result_.whole, pair) == result_.whole.end()) {
        result_.whole.push_back(pair);
      }
    }
    return values_[symbol];
  }

  void find_asked(const std::vector<NestStatement>& list) {
    for (const NestStatement& statement : list) {
      for (const NestCondition& condition : statement.conditions) {
        asked_[condition.variable] = true;
      }
      find_asked(statement.body);
    }
  }

  void walk(const std::vector<NestStatement>& list, const Polynomial& times) {
    for (const NestStatement& statement : list) {
      switch (statement.kind) {
        case Kind::loop:
          walk_loop(statement, times);
          continue;
        case Kind::phase:
          walk(statement.body, times);
          continue;
        case Kind::text:
          continue;
        case Kind::when: {
          const Polynomial left = used(eval(statement.size)), right = used(eval(statement.right));
          if (decide(left, statement.comparison, right)) {
            walk(statement.body, times);
          }
          continue;
        }
        case Kind::drop:
          if (!is_now(statement)) {
            continue;
          }
          enter(statement.phase);
          for (const TextTile& tile : statement.tiles) {
            living_ = living_ - alive_[tile.name];
            alive_[tile.name] = {};
          }
          break;
        case Kind::flops:
        case Kind::index:  // it has no words without a mask
          enter(statement.phase);
          break;
        case Kind::read:
        case Kind::make:
        case Kind::write:
          enter(statement.phase);
          if (is_now(statement)) {
            move(statement, times);
          }
      }
      raise(statement.phase);
    }
  }
  [[nodiscard]] bool is_now(const NestStatement& statement) const {
    return std::ranges::all_of(statement.conditions, [&](const NestCondition& condition) {
      const Pass& pass = passes_[condition.variable];
      return condition.holds(condition.first ? pass.first : pass.last);
    });
  }
  void move(const NestStatement& statement, const Polynomial& times) {
    Phase& phase = phases_[statement.phase];
    for (const TextTile& tile : statement.tiles) {
      Polynomial words = tile.sum ? sum_words_ : number(1);
      for (const NestIndex& index : tile.indices) {
        words = words * size_of(index);
      }
      if (statement.kind == Kind::write) {
        phase.writes = phase.writes + words * times;
        continue;
      }
      if (statement.kind == Kind::read) {
        phase.reads = phase.reads + words * times;
      }
      alive_[tile.name] = alive_[tile.name] + words;
      living_ = living_ + words;
    }
  }
  Polynomial size_of(const NestIndex& index) {
    switch (index.kind) {
      case NestIndex::Kind::number:
        return number(index.number);
      case NestIndex::Kind::extent:
      case NestIndex::Kind::block:
        return value_of(index.symbol);
      case NestIndex::Kind::part: {
        Sized size = eval(index.size);
        return used(index.symbol == kNoSymbol || index.symbol < kExtents
                        ? size
                        : chosen(Atom::Kind::min, std::move(size),
                                 {value_of(nest_.extent_of(index.symbol))}));
      }
      case NestIndex::Kind::each:
        break;
    }
    return number(1);
  }

  void walk_loop(const NestStatement& loop, const Polynomial& times) {
    Polynomial extent = value_of(loop.range);
    if (loop.from) {
      const Polynomial from = used(eval(*loop.from));
      if (!from.empty()) {
        if (decide(from, Comparison::at_least, extent)) {
          return;
        }
        extent = extent - from;
      }
    }
    const Polynomial block = used(eval(loop.size));
    const bool asked = asked_[loop.variable];
    const auto [is_single, condition] = compared(extent, Comparison::at_most, block);
    const bool by_rest = atoms_.has_rest(extent) || atoms_.has_rest(block);
    const auto most = by_rest ? without_rest(extent) : std::nullopt;
    if (most && !atoms_.has_rest(block) && at(*most) <= at(block)) {
      note({*most, Comparison::at_most, block});
      walk_body(loop, extent, {}, times);
      return;
    }
    if (!by_rest || asked) {
      note(condition);
      if (is_single) {
        walk_body(loop, extent, {}, times);
        return;
      }
    }
    const Polynomial passes = atoms_.function(Atom::Kind::ceil, extent, block);
    const Polynomial last = atoms_.function(Atom::Kind::rest, extent, block);
    if (asked) {
      walk_body(loop, block, {true, false}, times);
      // If there are only two passes, none is in the middle.
      const auto [are_two, two] = compared(extent, Comparison::at_most, number(2) * block);
      if (passes != number(2)) {
        perhaps(!are_two, two, [&] {
          walk_body(loop, block, {false, false}, times * (passes - number(2)));
        });
      }
      walk_body(loop, last, {false, true}, times);
      return;
    }
    // The pieces of a last block may be a single one, smaller than `block`.
    perhaps(!is_single, condition,
            [&] { walk_body(loop, block, {}, times * (passes - number(1))); });
    walk_body(loop, last, {}, times);
  }
  template <class Body>
  void perhaps(bool happens, const SizeCondition& need, const Body& body) {
    const bool before = happens_;
    happens_ = happens_ && happens;
    needs_.push_back(need);
    body();
    needs_.pop_back();
    happens_ = before;
  }
  void walk_body(const NestStatement& loop, const Polynomial& size, Pass pass,
                 const Polynomial& times) {
    const std::vector<Polynomial> alive = alive_;
    const Polynomial living = living_;
    values_[loop.variable] = size;
    passes_[loop.variable] = pass;
    walk(loop.body, times);
    alive_ = alive;
    living_ = living;
  }

  void enter(std::size_t phase) {
    if (phase != phase_) {
      leave();
      phase_ = phase;
      raise(phase);
      leave();
    }
  }
  void leave() {
    for (std::size_t outer = 0; phase_ < phases_.size() && outer < phases_.size(); ++outer) {
      if (nest_.phases[phase_].starts_with(nest_.phases[outer] + "/")) {
        raise(outer);
      }
    }
  }
  void raise(std::size_t phase) {
    Candidate now{living_, happens_, needs_};
    std::vector<Candidate>& peaks = phases_[phase].peaks;
    if (std::ranges::find(peaks, now) == peaks.end()) {
      peaks.push_back(std::move(now));
    }
  }

  // Whether a is at most b, wherever there is such a pass as for b.
  bool is_at_most(const Candidate& a, const Candidate& b) {
    const bool follows = std::ranges::all_of(b.needs, [&](const SizeCondition& need) {
      return std::ranges::find(a.needs, need) != a.needs.end() || facts_.prove(simple(need));
    });
    if (!b.happens || !follows) {
      return false;
    }
    const auto difference = without_rest(a.words - b.words);
    if (!difference) {
      return false;
    }
    const Polynomial least = number(-1) * *difference;
    if (facts_.at_least_0(least)) {
      return true;
    }
    // One condition more is easier to read than a peak that is the largest of more terms.
    std::vector<SizeCondition> needed;
    if (!may_assume_ || at(least) < 0 || !facts_.at_least_0(least, result_.sizes, needed) ||
        needed.size() > 1) {
      return false;
    }
    note(needed.front());
    return true;
  }
  // Returns the candidates of which each may be the largest.
  std::vector<Candidate> largest(std::vector<Candidate> all) {
    std::vector<Candidate> kept;
    // Larger ones first, so that few comparisons suffice.
    std::ranges::stable_sort(all, std::ranges::greater(), [&](const Candidate& one) {
      return std::pair(one.happens, at(one.words));
    });
    for (const Candidate& one : all) {
      if (std::ranges::any_of(kept,
                              [&](const Candidate& other) { return is_at_most(one, other); })) {
        continue;
      }
      std::erase_if(kept, [&](const Candidate& other) { return is_at_most(other, one); });
      kept.push_back(one);
    }
    for (const Candidate& one : kept) {
      std::ranges::for_each(one.needs, [&](const SizeCondition& need) { note(need); });
    }
    std::erase_if(kept, [](const Candidate& one) { return !one.happens; });
    return kept;
  }
  std::vector<Polynomial> expanded(const std::vector<Candidate>& of) {
    std::vector<Polynomial> all;
    for (const Candidate& one : of) {
      const Polynomial words = atoms_.expanded(one.words);
      if (std::ranges::find(all, words) == all.end()) {
        all.push_back(words);
      }
    }
    return all;
  }

  void find_free() {
    std::set<SymbolId> found;
    const auto add = [&](const Polynomial& of) { atoms_.find_symbols(of, found); };
    result_.phases.push_back(result_.total);
    for (const PhaseFormula& phase : result_.phases) {
      add(phase.reads);
      add(phase.writes);
      std::ranges::for_each(phase.peak, add);
    }
    result_.phases.pop_back();
    for (const SizeCondition& condition : result_.conditions) {
      add(condition.left);
      add(condition.right);
    }
    result_.free.assign(found.begin(), found.end());
  }

  const TextNest& nest_;
  const Polynomial sum_words_;
  NestFormula result_;
  Atoms& atoms_;
  Facts facts_;
  std::vector<Polynomial> values_;              // by symbol
  std::vector<std::optional<SymbolId>> whole_;  // by symbol: the extent that a block equals
  std::vector<bool> asked_;                     // by symbol
  std::vector<Pass> passes_;                    // by symbol
  std::vector<Phase> phases_;
  std::size_t phase_ = 0;
  std::vector<Polynomial> alive_;  // by tile
  Polynomial living_;
  bool happens_ = true, may_assume_ = true;
  std::vector<SizeCondition> needs_;
};

}  // namespace

NestFormula formula(const TextNest& nest, const NestSizes& sizes) {
  return Derivation(nest, sizes).run(count(nest, sizes));
}

bool holds(const NestFormula& formula, const std::vector<Index>& sizes) {
  const auto value = [&](const Polynomial& of) { return formula.atoms.value(of, sizes); };
  return std::ranges::all_of(
             formula.whole,
             [&](const auto& pair) { return sizes[pair.first] == sizes[pair.second]; }) &&
         std::ranges::all_of(formula.conditions, [&](const SizeCondition& condition) {
           return holds(condition.is, value(condition.left), value(condition.right));
         });
}

Index peak(const NestFormula& formula, const PhaseFormula& phase, const std::vector<Index>& sizes) {
  Index most = 0;
  for (const Polynomial& one : phase.peak) {
    most = std::max(most, formula.atoms.value(one, sizes));
  }
  return most;
}

}  // namespace redblue
