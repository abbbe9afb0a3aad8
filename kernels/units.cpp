#include "kernels/units.hpp"

#include <algorithm>
#include <utility>

#include "kernels/problem.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Units::Units(Mask mask, Index rows, Index others, Index step)
    : BlockRanges(rows, step), mask_(std::move(mask)), rows_(rows), others_(others), step_(step) {}

Units Units::of_rows(const Mask& mask, Index rows, Index others, Index step) {
  return {mask, rows, others, step};
}

Units Units::of_columns(const Mask& mask, Index columns, Index others, Index step) {
  return {mask.full() ? Mask() : mask.transposed(), columns, others, step};
}

Units Units::of_queries(const Problem& problem, Index step) {
  return of_rows(problem.mask, problem.passing_queries().size(), problem.shape.m, step);
}

Units Units::of_keys(const Problem& problem, Index step) {
  return of_columns(problem.mask, problem.shape.m, problem.shape.n, step);
}

Units::Sum Units::sum(Range which) const {
  return which.size() <= 0 ? Sum()
                           : sum_of({(*this)[which.begin].begin, (*this)[which.end - 1].end},
                                    std::min(step_, rows_));
}

Units::Sum Units::staying() const {
  const Index all = mask_.full() ? rows_ : mask_.queries();
  if (all == rows_) {
    return {};
  }
  Sum sum = sum_of({rows_, all}, all - rows_);
  sum.grouping.stays = true;
  return sum;
}

Units::Sum Units::sum_of(Range rows, Index size) const {
  Sum sum;
  sum.units = ceil_div(rows.size(), size);
  sum.rows = rows.size();
  sum.largest = std::min(size, rows.size());
  if (mask_.full()) {
    sum.met = Words(sum.units) * others_;
    sum.longest = sum.most = others_;
    sum.pairs = Words(rows.size()) * others_;
    sum.full = sum.last = {sum.largest, others_, others_};
  } else {
    // The last unit apart, if it is smaller.
    const Index end = rows.begin + std::max(rows.size() / size, Index{1}) * size;
    for (const Range part : {Range{rows.begin, std::min(end, rows.end)}, Range{end, rows.end}}) {
      if (part.size() <= 0) {
        continue;
      }
      const Mask::Met met = mask_.met_by_groups(part, size);
      sum.met += met.keys;
      sum.pairs += met.pairs;
      sum.index += met.index;
      sum.last = {std::min(size, part.size()), met.longest, met.most};
      if (part.begin == rows.begin) {
        sum.full = sum.last;
      }
    }
    sum.longest = std::max(sum.full.longest, sum.last.longest);
    sum.most = std::max(sum.full.most, sum.last.most);
    sum.index_live = mask_.index().live();
    sum.grouping = {.of_keys = mask_.index().of_keys(), .size = size};
    sum.regrouped = mask_.index().is_pattern();
  }
  return sum;
}

Units::Tiles Units::live_tiles(Index block) const {
  if (mask_.full()) {
    return {Words(rows_) * ceil_div(others_, block), Words(others_) * size(),
            Words(rows_) * others_, others_};
  }
  const Mask::Tiles tiles = mask_.live_tiles(step_, block);
  return {tiles.queries, tiles.keys, tiles.words, tiles.most};
}

Tile read_index(Machine& machine, const Mask& mask, Range rows) {
  return machine.read_indices(mask.index_words(rows).value(), mask.index().live());
}

Tile Units::read_index(Machine& machine, Range rows) const {
  return redblue::read_index(machine, mask_, rows);
}

Units Units::from(Index first) const {
  return mask_.full() ? Units(mask_, rows_, others_ - first, step_)
         : first == 0 ? *this
                      : Units(mask_.from_key(first), rows_, others_, step_);
}

Words Units::met_from(Index first, Range which) const {
  if (which.size() <= 0 || first == others_) {
    return 0;
  }
  const Range rows{(*this)[which.begin].begin, (*this)[which.end - 1].end};
  return mask_.full() ? Words(others_ - first) * which.size()
         : first == 0 ? sum(which).met
                      : mask_.from_key(first).met_by_groups(rows, step_).keys;
}

Words Units::first_met(Index most, Range which) const {
  if (which.size() <= 0) {
    return 0;
  }
  const Range rows{(*this)[which.begin].begin, (*this)[which.end - 1].end};
  return mask_.full() ? Words(std::min(others_, most)) * which.size()
                      : mask_.first_by_groups(rows, step_, most);
}

Words Units::shared(Index most) const {
  return mask_.full() ? Words(std::min(others_, most)) * (size() - 1)
                      : mask_.shared_by_groups({0, rows_}, step_, most);
}

Words all_pairs(const Mask& mask, Index rows, Index others) {
  return mask.full() ? Words(rows) * others : mask.pairs({0, rows}, {0, others});
}

Words met_by_blocks(const Mask& mask, Index rows, Index block, Index others) {
  return mask.full() ? Words(others) * ceil_div(rows, block)
                     : mask.met_by_groups({0, rows}, block).keys;
}

PhaseCost with_index(PhaseCost cost, const Units::Sum& of, Index passes) {
  cost.reads += of.index * passes;
  cost.index_reads += of.index * passes;
  if (of.regrouped) {
    cost.groupings.push_back(of.grouping);
    cost.groupings.back().words = of.index;
  }
  return cost;
}

void index_nest(NestWriter& nest, const Units::Sum& of, Index passes) {
  if (of.index_live > 0) {
    nest.read({NestTile("index", of.index_live).of_words(of.index * passes)});
  }
}

}  // namespace redblue
