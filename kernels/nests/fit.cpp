#include "kernels/nests/fit.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace redblue {
namespace {

// A larger block never moves more words, and never has a smaller peak. So the largest blocks of a
// box give a lower bound for its words, and the smallest ones say whether any of it fits. The
// search splits the box of the least bound, until no box can be better than the best blocks so far.
class Search {
 public:
  Search(const TextNest& nest, const NestSizes& sizes, Index multiple)
      : nest_(nest),
        M_(sizes.extents.M),
        multiple_(multiple),
        counter_(nest, sizes.mask, sizes.sum_words),
        without_mask_(nest, {}, sizes.sum_words) {
    NestSizes with_all = sizes;
    for (const NestBlock& block : nest.blocks) {
      const std::string& name = nest.symbols[block.symbol].name;
      if (!sizes.blocks.contains(name) && !block.size) {
        free_.push_back(block.symbol);
        with_all.blocks.add(name, 1);
      } else if (block.size && !sizes.blocks.contains(name)) {
        derived_.push_back(&block);
      }
    }
    values_ = values_of(nest, with_all);
    most_.resize(nest.symbols.size());
    for (const NestBlock& block : nest.blocks) {
      most_[block.symbol] = values_[block.of];
    }
    widen(nest.statements);
    for (const SymbolId block : free_) {
      values_[block] = least(block);
    }
    stays_ = stays(nest.statements);
  }

  // `start`: blocks to begin with, if any are known.
  const std::vector<Index>& run(std::vector<Index> start) {
    start_ = std::move(start);
    for (const std::vector<SymbolId>& group : groups()) {
      search(group);
    }
    for (auto block = free_.rbegin(); block != free_.rend(); ++block) {
      enlarge(*block);
    }
    values_ = complete(values_);
    return values_;
  }

  // Takes the same size for all blocks of a group, as far as their extents allow, and the largest
  // that fits.
  const std::vector<Index>& run_evenly() {
    for (const std::vector<SymbolId>& group : groups()) {
      Index most = 0;
      for (const SymbolId block : group) {
        most = std::max(most, most_[block]);
      }
      const auto of_size = [&](Index size) {
        Values values = values_;
        for (const SymbolId block : group) {
          values[block] = std::min(rounded(block, size), most_[block]);
        }
        return values;
      };
      Index good = 1;
      for (Index bad = most + 1; bad - good > 1;) {
        const Index size = good + (bad - good) / 2;
        (fits(of_size(size)) ? good : bad) = size;
      }
      values_ = of_size(good);
    }
    values_ = complete(values_);
    return values_;
  }

 private:
  static constexpr std::size_t kMostStaying = 4;
  static constexpr double kFewPoints = 20'000;  // a search of all blocks counts so many
  static constexpr Index kMostSteps = 400'000;  // of NestCounter, in a search by boxes
  using Values = std::vector<Index>;

  // The sizes of a block are multiples of multiple_. complete() cuts them at the extent.
  [[nodiscard]] Index least(SymbolId block) const {
    const bool may_be_0 = !std::ranges::find(nest_.blocks, block, &NestBlock::symbol)->is_step;
    return may_be_0 ? 0 : multiple_;
  }
  [[nodiscard]] Index rounded(SymbolId block, Index size) const {
    return std::max(size / multiple_ * multiple_, least(block));
  }
  // Returns the largest size. With it, the loop has one pass.
  [[nodiscard]] Index largest(SymbolId block) const {
    return ceil_div(most_[block], multiple_) * multiple_;
  }

  // A block may cut several extents. It is at most as large as the largest one.
  void widen(const std::vector<NestStatement>& list) {
    for (const NestStatement& statement : list) {
      if (statement.kind == NestStatement::Kind::loop) {
        const Index extent = values_[nest_.root(statement.range)];
        for (const SymbolId block : free_) {
          if (statement.size.uses(block)) {
            most_[block] = std::max(most_[block], extent);
          }
        }
      }
      widen(statement.body);
    }
  }

  // Blocks of different groups are in no loop nest together. Their words add up, so each group is
  // searched alone. If a tile outside all loops depends on a block, it may live in all of them.
  [[nodiscard]] std::vector<std::vector<SymbolId>> groups() const {
    std::vector<std::vector<SymbolId>> groups;
    for (const NestStatement& statement : nest_.statements) {
      join(statement, groups);
    }
    if (stays_) {
      groups = {free_};
    }
    return groups;
  }
  [[nodiscard]] bool stays(const std::vector<NestStatement>& list) const {
    return std::ranges::any_of(list, [&](const NestStatement& statement) {
      using Kind = NestStatement::Kind;
      const bool is_tile = statement.kind == Kind::read || statement.kind == Kind::make;
      return statement.kind == Kind::phase || statement.kind == Kind::when
                 ? stays(statement.body)
                 : is_tile && std::ranges::any_of(
                                  free_, [&](SymbolId block) { return depends(statement, block); });
    });
  }
  void only_with(const std::vector<SymbolId>& group) {
    if (!stays_) {
      counter_.only_with(with_derived(group));
      without_mask_.only_with(with_derived(group));
    }
  }
  void join(const NestStatement& statement, std::vector<std::vector<SymbolId>>& groups) const {
    std::vector<SymbolId> together;
    for (const SymbolId block : free_) {
      if (depends(statement, block)) {
        together.push_back(block);
      }
    }
    if (together.empty()) {
      return;
    }
    std::erase_if(groups, [&](const std::vector<SymbolId>& group) {
      const bool meets = std::ranges::any_of(group, [&](SymbolId block) {
        return std::ranges::find(together, block) != together.end();
      });
      if (meets) {
        for (const SymbolId block : group) {
          if (std::ranges::find(together, block) == together.end()) {
            together.push_back(block);
          }
        }
      }
      return meets;
    });
    std::ranges::sort(together);
    groups.push_back(std::move(together));
  }

  [[nodiscard]] bool fits(const NestWords& words) const { return words.peak <= Words(M_); }
  NestWords words(const Values& values) { return counter_.total(complete(values)); }
  // Cuts blocks at their extents, and sets blocks that are formulas of other blocks.
  [[nodiscard]] Values complete(Values values) const {
    for (const SymbolId block : free_) {
      values[block] = std::min(values[block], most_[block]);
    }
    for (const NestBlock* block : derived_) {
      values[block->symbol] = std::max<Index>(block->size->value(values), 0);
    }
    return values;
  }
  // Returns whether a statement depends on a block, also through formulas of other blocks.
  [[nodiscard]] bool depends(const NestStatement& statement, SymbolId block) const {
    return uses(statement, block) || std::ranges::any_of(derived_, [&](const NestBlock* other) {
             return other->size->uses(block) && depends(statement, other->symbol);
           });
  }
  // Returns the blocks of a group, and the blocks with formulas of them.
  [[nodiscard]] std::vector<SymbolId> with_derived(std::vector<SymbolId> group) const {
    for (const NestBlock* block : derived_) {
      if (std::ranges::any_of(group, [&](SymbolId of) { return block->size->uses(of); })) {
        group.push_back(block->symbol);
      }
    }
    return group;
  }

  // No mask makes a peak larger, and without one it takes no time.
  bool fits(const Values& values) {
    return fits(without_mask_.total(complete(values))) || fits(words(values));
  }

  // A lower bound for the words of all blocks that are at most `values`. Pieces of a block are
  // fewest if the block is a multiple of them.
  Words bound(Values values) {
    values = complete(std::move(values));
    align(nest_.statements, values);
    return counter_.total(values).words;
  }
  void align(const std::vector<NestStatement>& list, Values& values) const {
    for (const NestStatement& statement : list) {
      align(statement.body, values);
      if (statement.kind != NestStatement::Kind::loop ||
          nest_.symbols[statement.range].kind != NestSymbol::Kind::variable) {
        continue;
      }
      const SymbolId outer = nest_.loop_of(statement.range).size.symbol();
      const SymbolId inner = statement.size.symbol();
      const Index piece = inner != kNoSymbol                 ? values[inner]
                          : statement.size.steps.size() == 1 ? statement.size.steps[0].number
                                                             : 1;
      if (outer != kNoSymbol && std::ranges::find(free_, outer) != free_.end() && piece > 0) {
        values[outer] = ceil_div(values[outer], piece) * piece;
      }
    }
  }

  struct Box {
    Words bound;
    Values low, high;  // of the blocks of the group
    Index serial = 0;  // orders equal bounds, so that every C++ library finds the same blocks
    bool operator<(const Box& other) const {
      return std::tie(bound, serial) > std::tie(other.bound, other.serial);
    }
  };

  void search(const std::vector<SymbolId>& group) {
    only_with(group);
    Values low, high;
    std::vector<std::size_t> may_stay;  // blocks that may be 0
    for (std::size_t k = 0; k < group.size(); ++k) {
      low.push_back(least(group[k]));
      high.push_back(largest(group[k]));
      if (low.back() == 0 && may_stay.size() < kMostStaying) {
        may_stay.push_back(k);
      }
    }
    best_.clear();
    if (!start_.empty()) {
      Values sizes;
      for (const SymbolId block : group) {
        sizes.push_back(start_[block]);
      }
      offer(group, sizes);
    }
    // A loop over the rest of a matrix has no pass if all of it stays, and small tiles if most of
    // it does. Then the peak falls.
    if (points(low, high) <= kFewPoints) {
      if (!may_stay.empty() || offer(group, low)) {
        search_all(group, low, high, 0, low);
      }
    } else {
      for (std::size_t all = 0; all < std::size_t{1} << may_stay.size(); ++all) {
        Values least = low;
        for (std::size_t k = 0; k < may_stay.size(); ++k) {
          if ((all >> k & 1) != 0) {
            least[may_stay[k]] = high[may_stay[k]];
          }
        }
        if (offer(group, least)) {
          search_boxes(group, {bound(with(group, high)), least, high});
        }
      }
    }
    if (!best_.empty()) {
      values_ = best_;
    }
  }
  [[nodiscard]] double points(const Values& low, const Values& high) const {
    double points = 1;
    for (std::size_t k = 0; k < low.size(); ++k) {
      points *= static_cast<double>((high[k] - low[k]) / multiple_ + 1);
    }
    return points;
  }
  [[nodiscard]] Values with(const std::vector<SymbolId>& group, const Values& sizes) const {
    Values values = values_;
    for (std::size_t k = 0; k < group.size(); ++k) {
      values[group[k]] = sizes[k];
    }
    return values;
  }

  void search_all(const std::vector<SymbolId>& group, const Values& low, const Values& high,
                  std::size_t k, Values sizes) {
    if (k == group.size()) {
      offer(group, sizes);
      return;
    }
    for (Index size = low[k]; size <= high[k]; size += multiple_) {
      sizes[k] = size;
      search_all(group, low, high, k + 1, sizes);
    }
  }
  bool offer(const std::vector<SymbolId>& group, const Values& sizes) {
    Values values = with(group, sizes);
    const NestWords its = words(values);
    if (!fits(its)) {
      return false;
    }
    if (best_.empty() || its.words < fewest_) {
      fewest_ = its.words;
      best_ = std::move(values);
    }
    return true;
  }

  void search_boxes(const std::vector<SymbolId>& group, Box all) {
    std::priority_queue<Box> boxes;
    boxes.push(std::move(all));
    Index pushed = 0;
    const Index begun = counter_.steps();
    while (!boxes.empty() && boxes.top().bound < fewest_ && counter_.steps() - begun < kMostSteps) {
      const Box box = boxes.top();
      boxes.pop();
      if (offer(group, box.high)) {
        continue;  // the best of its box
      }
      climb(group, box);
      const std::size_t side = longest(box);
      if (box.low[side] == box.high[side]) {
        continue;
      }
      const double size = std::sqrt(more(box.low[side]) * more(box.high[side])) - 1;
      const Index middle = std::clamp(rounded(group[side], static_cast<Index>(size)), box.low[side],
                                      box.high[side] - multiple_);
      for (const bool upper : {false, true}) {
        Box part = box;
        (upper ? part.low : part.high)[side] = upper ? middle + multiple_ : middle;
        if (upper && !fits(with(group, part.low))) {
          continue;
        }
        part.bound = upper ? box.bound : bound(with(group, part.high));
        if (part.bound < fewest_) {
          part.serial = ++pushed;
          boxes.push(std::move(part));
        }
      }
    }
  }
  static double more(Index size) { return static_cast<double>(size) + 1; }  // a size may be 0
  static std::size_t longest(const Box& box) {
    std::size_t longest = 0;
    double ratio = 0;
    for (std::size_t k = 0; k < box.low.size(); ++k) {
      const double its = more(box.high[k]) / more(box.low[k]);
      if (its > ratio) {
        ratio = its;
        longest = k;
      }
    }
    return longest;
  }
  // Offers the largest blocks that fit on the way from the smallest ones of a box to its largest.
  void climb(const std::vector<SymbolId>& group, const Box& box) {
    constexpr int kSteps = 6;
    double low = 0, high = 1;
    for (int step = 0; step < kSteps; ++step) {
      const double share = (low + high) / 2;
      Values sizes = box.low;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const double ratio = more(box.high[k]) / more(box.low[k]);
        const double size = more(box.low[k]) * std::pow(ratio, share) - 1;
        sizes[k] = std::clamp(rounded(group[k], static_cast<Index>(size)), box.low[k], box.high[k]);
      }
      (offer(group, sizes) ? low : high) = share;
    }
  }

  // Takes the largest size of a block with which the words do not rise and the peak fits.
  void enlarge(SymbolId block) {
    only_with({block});
    const NestWords now = words(values_);
    if (!fits(now)) {
      return;
    }
    Index good = values_[block];
    Values tried = values_;
    for (Index bad = largest(block) + multiple_; bad - good > multiple_;) {
      const Index size = rounded(block, good + (bad - good) / 2);
      if (size <= good) {
        break;
      }
      tried[block] = std::min(size, largest(block));
      const NestWords its = words(tried);
      (fits(its) && its.words <= now.words ? good : bad) = size;
    }
    values_[block] = std::min(good, most_[block]);  // a larger one cuts nothing
  }

  const TextNest& nest_;
  const Index M_, multiple_;
  NestCounter counter_, without_mask_;
  Values start_;
  std::vector<SymbolId> free_;
  bool stays_ = false;                     // a tile that depends on a block, outside all loops
  std::vector<const NestBlock*> derived_;  // in the order of the file
  Values values_, most_, best_;
  Words fewest_;
};

// Returns the sizes by name, without blocks that are formulas of other blocks: they follow from
// them.
Blocks named(const TextNest& nest, const NestSizes& sizes, const std::vector<Index>& values) {
  Blocks blocks;
  for (const NestBlock& block : nest.blocks) {
    const std::string& name = nest.symbols[block.symbol].name;
    if (!follows(nest, block) || sizes.blocks.contains(name)) {
      blocks.add(name, values[block.symbol]);
    }
  }
  return blocks;
}

}  // namespace

Blocks fit(const TextNest& nest, const NestSizes& sizes, Index multiple) {
  NestSizes full = sizes;
  full.mask = {};
  std::vector<Index> values = Search(nest, full, multiple).run({});
  if (!sizes.mask.full()) {
    values = Search(nest, sizes, multiple).run(std::move(values));
  }
  return named(nest, sizes, values);
}

Blocks fit_evenly(const TextNest& nest, const NestSizes& sizes, Index multiple) {
  return named(nest, sizes, Search(nest, sizes, multiple).run_evenly());
}

}  // namespace redblue
