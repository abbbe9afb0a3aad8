#pragma once
// Counts a nest exactly: the words that each phase reads and writes, and the most words that live
// at once. A loop is not run pass by pass. Its passes fall into a few classes, by the size of their
// block and by whether they are the first or the last one. Each class is walked once and counts as
// often as it occurs.

#include <memory>
#include <utility>
#include <vector>

#include "kernels/mask.hpp"
#include "kernels/nest.hpp"
#include "kernels/nests/text_nest.hpp"
#include "kernels/plan.hpp"

namespace redblue {

// The sizes that a count depends on.
struct NestSizes {
  NestExtents extents;
  Blocks blocks;
  Mask mask = {};  // of n queries and m keys, all of them live
  Index sum_words = 1;
  bool softmax = true;
};

// Returns the value of each symbol: extents, and the block sizes of `blocks` or of the nest itself.
// Throws: NestError if a block has no size, or is not positive.
std::vector<Index> values_of(const TextNest& nest, const NestSizes& sizes);

// Throws: NestError for a loop with a step below 1.
std::vector<PhaseCost> count(const TextNest& nest, const NestSizes& sizes);
// Returns the lines of the nest with the words of each.
Nest lines(const TextNest& nest, const NestSizes& sizes);

// Counts many block sizes of one nest. `values` are from values_of().
struct NestWords {
  Words words, peak;
};
// The words of one tile in a statement: its largest block, and all that moved.
struct MovedTile {
  Words largest, moved;
};
class NestCounter {
 public:
  NestCounter(const TextNest& nest, const Mask& mask, Index sum_words);
  NestCounter(const NestCounter&) = delete;
  NestCounter& operator=(const NestCounter&) = delete;
  ~NestCounter();

  const std::vector<PhaseCost>& phases(const std::vector<Index>& values);
  NestWords total(const std::vector<Index>& values);
  // From now on, total() leaves out loops without these block sizes. Their words do not depend on
  // the sizes.
  void only_with(const std::vector<SymbolId>& blocks);
  // Returns whether the phase began in the last call.
  [[nodiscard]] bool entered(std::size_t phase) const;
  // Returns a measure of the time that all calls took: the number of classes and of positioned
  // blocks.
  [[nodiscard]] Index steps() const;
  // The results of the last call for one statement. passes() returns the most passes of a loop in
  // one pass of the loops around it, and its largest block. happened() is for texts and drops.
  [[nodiscard]] std::pair<Index, Index> passes(const NestStatement& loop) const;
  [[nodiscard]] bool happened(const NestStatement& statement) const;
  // Returns the words of each tile. The list is empty if the statement did not happen.
  [[nodiscard]] std::vector<MovedTile> tiles(const NestStatement& statement) const;

 private:
  class Walk;
  std::vector<PhaseCost> phases_;
  std::unique_ptr<Walk> walk_;
};

}  // namespace redblue
