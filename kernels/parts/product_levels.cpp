#include "kernels/parts/product_levels.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/levels.hpp"

namespace redblue {
namespace {

class ProductWalk {
 public:
  ProductWalk(Machine& machine, const ProductLevels& levels, Stays what,
              const Placed<const Tile>& a, const Placed<const Tile>& b, const Placed<Tile>& c,
              std::optional<Index> begin)
      : machine_(machine), levels_(levels), what_(what), a_(a), b_(b), c_(c), begin_(begin) {}

  void walk(std::size_t levels, Range I, Range J, Range K) {
    if (levels == 0) {
      if (a_.transposed) {
        multiply_add(transposed(a_.part(I, K)), b_.part(K, J), c_.part(I, J));
      } else {
        multiply_add(a_.part(I, K), b_.part(K, J), c_.part(I, J));
      }
      return;
    }
    const ProductBlocks& by = levels_[levels - 1];
    Level& in = machine_.inner()[levels - 1];
    if (what_ == Stays::C) {
      each(I, by.rows, [&](Range I1) {
        each(J, by.cols, [&](Range J1) {
          const Loan c = sums(in, I1, J1, K);
          each(K, by.depth, [&](Range K1) {
            const Loan a = borrow(in, a_, I1, K1), b = borrow(in, b_, K1, J1);
            walk(levels - 1, I1, J1, K1);
          });
        });
      });
      return;
    }
    each(I, by.rows, [&](Range I1) {
      each(K, by.depth, [&](Range K1) {
        const Loan a = borrow(in, a_, I1, K1);
        each(J, by.cols, [&](Range J1) {
          const Loan b = borrow(in, b_, K1, J1);
          const Loan c = sums(in, I1, J1, K1);
          walk(levels - 1, I1, J1, K1);
        });
      });
    });
  }

 private:
  template <class Visit>
  static void each(Range all, Index step, const Visit& visit) {
    for (const Range part : blocks(all.size(), step)) {
      visit(part_of(all, part));
    }
  }
  static Loan borrow(Level& in, const Placed<const Tile>& tile, Range rows, Range columns) {
    return {in, tile.tile, tile.rows(rows, columns), tile.columns(rows, columns),
            Level::How::reads};
  }
  Loan sums(Level& in, Range I, Range J, Range K) const {
    const Range rows = c_.rows(I, J), columns = c_.columns(I, J);
    return {in, c_.tile, rows, columns,
            begin_ == K.begin ? Level::How::makes : Level::How::changes};
  }

  Machine& machine_;
  const ProductLevels& levels_;
  Stays what_;
  const Placed<const Tile>& a_;
  const Placed<const Tile>& b_;
  const Placed<Tile>& c_;
  std::optional<Index> begin_;  // the place in the depth where sums begin
};

// Returns one member of each of the blocks.
std::vector<Index> steps_of(std::span<const ProductBlocks> blocks, Index ProductBlocks::*block) {
  std::vector<Index> steps;
  for (const ProductBlocks& by : blocks) {
    steps.push_back(by.*block);
  }
  return steps;
}

}  // namespace

void add_product(Machine& machine, const ProductLevels& levels, Stays what,
                 const Placed<const Tile>& a, const Placed<const Tile>& b, const Placed<Tile>& c,
                 Range I, Range J, Range K, bool begins) {
  ProductWalk(machine, levels, what, a, b, c, begins ? std::optional(K.begin) : std::nullopt)
      .walk(levels.size(), I, J, K);
}

PhaseCost product_level_cost(std::string path, const ProductShape& of, const ProductLevels& blocks,
                             Stays what) {
  // The number of pieces of this level, or of the next level for the resident matrix.
  const auto count = [&](Index extent, Index ProductBlocks::*block, bool of_next) {
    const std::vector<Index> steps = steps_of(std::span(blocks).subspan(of_next ? 1 : 0), block);
    return steps.empty() ? 1 : pieces(extent, steps.front(), std::span(steps).subspan(1));
  };
  const auto most = [&](Index extent, Index ProductBlocks::*block) {
    return Words(std::min(extent, std::ranges::min(steps_of(blocks, block))));
  };
  const Index rows = of.rows, cols = of.cols, depth = of.depth;
  const Index sums = count(depth, &ProductBlocks::depth, what == Stays::C);
  const Words r = most(rows, &ProductBlocks::rows), c = most(cols, &ProductBlocks::cols),
              s = most(depth, &ProductBlocks::depth);
  return {.path = std::move(path),
          .reads = Words(rows) * depth * count(cols, &ProductBlocks::cols, what == Stays::A) +
                   Words(depth) * cols * count(rows, &ProductBlocks::rows, what == Stays::B) +
                   Words(rows) * cols * (sums - 1),
          .writes = Words(rows) * cols * sums,
          .peak = r * c + r * s + s * c,
          .flops = 0};
}

}  // namespace redblue
