#include "kernels/nests/text_nest.hpp"

#include <algorithm>
#include <array>

#include "memsim/errors.hpp"

namespace redblue {

NestError::NestError(std::string_view file, Index line, const std::string& what)
    : std::invalid_argument(std::string(file) + ":" + std::to_string(line) + ": " + what) {}

bool holds(Comparison comparison, Index a, Index b) {
  switch (comparison) {
    case Comparison::less:
      return a < b;
    case Comparison::at_most:
      return a <= b;
    case Comparison::equal:
      return a == b;
    case Comparison::unequal:
      return a != b;
    case Comparison::at_least:
      return a >= b;
    case Comparison::more:
      break;
  }
  return a > b;
}

Comparison opposite(Comparison comparison) {
  constexpr std::array kOpposites = {Comparison::at_least, Comparison::more, Comparison::unequal,
                                     Comparison::equal,    Comparison::less, Comparison::at_most};
  return kOpposites[static_cast<std::size_t>(comparison)];
}

Index NestSize::value(const std::vector<Index>& values) const {
  std::array<Index, kDeepestNest + 1> stack;
  std::size_t top = 0;
  for (const auto [op, number] : steps) {
    if (op == Op::number) {
      stack[top++] = number;
      continue;
    }
    if (op == Op::symbol) {
      stack[top++] = values[static_cast<std::size_t>(number)];
      continue;
    }
    if (op == Op::choose) {
      top -= 3;
      stack[top - 1] = holds(static_cast<Comparison>(number), stack[top - 1], stack[top])
                           ? stack[top + 1]
                           : stack[top + 2];
      continue;
    }
    const Index b = stack[--top];
    Index& a = stack[top - 1];
    bool fits = true;
    switch (op) {
      case Op::add:
        fits = !__builtin_add_overflow(a, b, &a);
        break;
      case Op::subtract:
        fits = !__builtin_sub_overflow(a, b, &a);
        break;
      case Op::multiply:
        fits = !__builtin_mul_overflow(a, b, &a);
        break;
      case Op::divide:
      case Op::ceil:
        require(b > 0 && a >= 0, "a size divides numbers that are not negative, and not by 0");
        a = op == Op::divide ? a / b : ceil_div(a, b);
        break;
      case Op::min:
        a = std::min(a, b);
        break;
      case Op::max:
        a = std::max(a, b);
        break;
      case Op::number:
      case Op::symbol:
      case Op::choose:
        break;  // done above
    }
    if (!fits) {
      throw CountOverflow("a size in the nest exceeds 63 bits");
    }
  }
  return stack[0];
}

bool NestSize::uses(SymbolId symbol) const {
  return std::ranges::any_of(steps, [&](const Step& step) {
    return step.op == Op::symbol && step.number == static_cast<Index>(symbol);
  });
}

SymbolId NestSize::symbol() const {
  return steps.size() == 1 && steps[0].op == Op::symbol ? static_cast<SymbolId>(steps[0].number)
                                                        : kNoSymbol;
}

namespace {

bool uses(const std::vector<NestIndex>& indices, SymbolId symbol) {
  return std::ranges::any_of(indices, [&](const NestIndex& index) {
    return index.symbol == symbol || index.size.uses(symbol);
  });
}

}  // namespace

bool uses(const NestStatement& statement, SymbolId symbol) {
  return statement.range == symbol || statement.size.uses(symbol) || statement.right.uses(symbol) ||
         (statement.from && statement.from->uses(symbol)) ||
         std::ranges::any_of(statement.tiles,
                             [&](const TextTile& tile) { return uses(tile.indices, symbol); }) ||
         std::ranges::any_of(statement.body,
                             [&](const NestStatement& inner) { return uses(inner, symbol); });
}

namespace {

const NestStatement* find_loop(const std::vector<NestStatement>& in, SymbolId variable) {
  for (const NestStatement& statement : in) {
    if (statement.variable == variable) {
      return &statement;
    }
    if (const NestStatement* found = find_loop(statement.body, variable)) {
      return found;
    }
  }
  return nullptr;
}

}  // namespace

const NestStatement& TextNest::loop_of(SymbolId variable) const {
  return *find_loop(statements, variable);
}

SymbolId TextNest::root(SymbolId symbol) const {
  while (symbols[symbol].kind == NestSymbol::Kind::variable) {
    symbol = symbols[symbol].range;
  }
  return symbol;
}

bool TextNest::uses_extent(SymbolId extent) const {
  return std::ranges::any_of(
             statements, [&](const NestStatement& statement) { return uses(statement, extent); }) ||
         std::ranges::any_of(
             matrices, [&](const NestMatrix& matrix) { return uses(matrix.extents, extent); });
}

SymbolId TextNest::extent_of(SymbolId block) const {
  return std::ranges::find(blocks, block, &NestBlock::symbol)->of;
}

bool TextNest::uses_variable(const NestSize& its) const {
  return std::ranges::any_of(its.steps, [&](const NestSize::Step& step) {
    if (step.op != NestSize::Op::symbol) {
      return false;
    }
    const NestSymbol::Kind kind = symbols[static_cast<SymbolId>(step.number)].kind;
    return kind == NestSymbol::Kind::variable || kind == NestSymbol::Kind::met;
  });
}

bool TextNest::is_selected(const NestIndex& index, const TextTile& tile) const {
  if (index.kind != NestIndex::Kind::block && index.kind != NestIndex::Kind::extent) {
    return false;
  }
  const SymbolId of = root(index.symbol);
  return (of == kExtentN || of == kExtentM) && (tile.live || of != root(tile.met_by));
}

bool TextNest::selects(const NestStatement& loop, const TextTile& tile) const {
  return loop.variable == tile.met_by ||
         std::ranges::any_of(tile.indices, [&](const NestIndex& index) {
           SymbolId symbol = is_selected(index, tile) ? index.symbol : kExtentN;
           while (symbols[symbol].kind == NestSymbol::Kind::variable && symbol != loop.variable) {
             symbol = symbols[symbol].range;
           }
           return symbol == loop.variable;
         });
}

bool TextNest::of_all_heads() const {
  return uses_extent(kExtentHeads) || uses_extent(kExtentKvHeads);
}

const NestTakes* untaken(const TextNest& nest, const NestExtents& extents) {
  const std::vector<Index> values = extents.values();
  const auto found = std::ranges::find_if_not(nest.takes, [&](const NestTakes& its) {
    return holds(its.comparison, its.left.value(values), its.right.value(values));
  });
  return found == nest.takes.end() ? nullptr : &*found;
}

bool follows(const TextNest& nest, const NestBlock& block) {
  return block.size && std::ranges::any_of(nest.blocks, [&](const NestBlock& other) {
           return block.size->uses(other.symbol);
         });
}

}  // namespace redblue
