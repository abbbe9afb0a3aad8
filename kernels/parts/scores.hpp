#pragma once
// The scores A B^T of all rows of A (n x d) and B (m x d), with an epilogue. A ScoreEpilogue turns
// each score into f or p, for example, before it is written.
//
// The blocks decide which tile stays (rows_stay()): a block of whole rows of A while B streams, or
// a tile of scores while A and B stream. Where B streams past a wide tile, its pieces are a power
// of two of its rows, or a multiple of kPanel. The words that the epilogue needs for a row (L, v)
// stay with resident rows. A resident tile of scores leaves no room for them, so they are read
// again for each tile.
//
// Under a mask only live pairs are written. A block of rows reads only the keys that it meets. A
// tile reads only rows and keys with a live pair in the tile. A tile with no live pair moves no
// words.

#include <optional>
#include <string>
#include <string_view>

#include "kernels/parts/activations.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/parts/tile_levels.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// The names, for a nest, of the operation of an epilogue and of the words it moves.
struct EpilogueNames {
  std::string_view text = {};                        // "f = exp(f - L)"
  ColumnNames columns = {};                          // resident columns
  std::string_view row_reads = {}, row_writes = {};  // words moved for each row
};

// The cost of an epilogue, in addition to the product and its n m writes. Words of a row are sums,
// unless a member says otherwise.
struct EpilogueCost {
  Index columns = 0;            // resident words for each row
  Index scratch = 0;            // scratch words for each row of a piece
  Index tiles = 0;              // more words for each score of a piece
  Index reads = 0;              // words read for each score
  Index row_reads = 0;          // for each row, each time it is entered
  Index row_operands = 0;       // the same, of operands instead of sums
  Index row_reads_again = 0;    // for each row, each time but the first
  Index row_writes = 0;         // for each row, each time it is left
  Index row_writes_before = 0;  // for each row, each time but the last
  bool writes_raw = false;      // true: the scores are written before the epilogue changes them
  EpilogueNames names = {};
  // In inner levels: the cost of the pass over scores, if there is a pass, and the cost of leaving
  // rows.
  PassCost near = {}, leaving = {};
  bool scaled = false;  // an earlier pass multiplies the scores by a factor
  [[nodiscard]] EpilogueCost times_scale() const {
    EpilogueCost cost = *this;
    cost.scaled = true;
    return cost;
  }
};

// Whether rows of A stay with these blocks, rather than tiles of scores.
inline bool rows_stay(const ProductShape& of, const StationaryBlocks& by) {
  return by.depth >= of.depth;
}

// Resident rows of A, straight or transposed. `room` is the number of rows of another matrix
// (transposed: of columns) that also fit before the first scores.
struct StayingRows {
  const Tile& tile;
  bool transposed;
  Index room;
};

class ScoreEpilogue {
 public:
  virtual ~ScoreEpilogue() = default;
  // Up to two columns with one word for each row of the pairs. enter() reads or makes them before
  // the scores. `rows` is null if a tile of scores stays. A row that meets no key of the pairs may
  // have any word.
  struct RowTiles {
    Tile first, second;
  };
  virtual RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) = 0;
  // Changes the rows `part` of s, the scores of the pairs. Their words in `of` are the rows
  // `within`. The scores of dead pairs may be anything: apply() treats each score alone, or first
  // sets the dead ones.
  virtual void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, RowTiles& of,
                     Range within) = 0;
  virtual void leave(Machine&, RowTiles&, const LivePairs&) {}
  // Sets the inner levels for one phase. Requires: `levels` lives until the phase ends.
  void work_in(const ProductLevels& levels) { levels_ = &levels; }
  const bool writes_raw = false;
  const std::optional<float> scale;  // multiplies the scores before the epilogue

 protected:
  explicit ScoreEpilogue(bool raw = false, std::optional<float> times = std::nullopt)
      : writes_raw(raw), scale(times) {}
  [[nodiscard]] const ProductLevels& levels() const { return *levels_; }
  // Calls visit(rows, columns) for parts of the scores of the pairs, in the inner levels. Each
  // score has `beside` more words.
  template <class Borrowed, class Visit>
  void over(Machine& machine, const LivePairs& pairs, Index beside, const Borrowed& near,
            const Visit& visit) const {
    pass_over(machine, levels(), &ProductBlocks::cols, beside, pairs.queries().size(),
              pairs.keys().size(), near, visit);
  }

 private:
  const ProductLevels* levels_ = nullptr;
};

// Reads the words of a column for the rows with a live pair; 0 for other rows.
Tile live_column(Machine& machine, const SlowMatrix& column, const LivePairs& pairs);

PhaseCost scores_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                      const EpilogueCost& epilogue);
PhaseCost scores_level_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                            const EpilogueCost& epilogue, std::size_t level);
// `names` are the names of the result, of A and of B^T.
void scores_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
                 const StationaryBlocks& by, const EpilogueCost& epilogue);
// Makes the scores, as a phase of a kernel with blocks of this name in its plan.
void scores_phase(Machine& machine, std::string_view name, const Plan& plan, const SlowMatrix& A,
                  const SlowMatrix& B, ScoreEpilogue& epilogue, SlowMatrix& result);

// Return the blocks with the fewest words under a mask. fit_score_rows() considers only resident
// rows of A. `cost` counts with the mask, `all_live` without it.
StationaryBlocks fit_live_scores(const Problem& problem, Index M, Objective objective,
                                 const StationaryCost& cost, const StationaryCost& all_live);
StationaryBlocks fit_score_rows(const Problem& problem, Index M, Objective objective,
                                const StationaryCost& cost);
// Returns a matrix of scores that stores live pairs only.
SlowMatrix score_matrix(Workspace& workspace, std::string name, const Problem& problem);

// Choose the largest blocks for two tiles together, both rows x cols, with `columns` words for each
// row. The blocks are named NAME.rows and NAME.cols, in inner levels L1.NAME.rows and so on. The
// other functions read them.
void plan_pairs(std::string_view name, Index rows, Index cols, Index columns, const Memory& memory,
                Blocks& blocks);
ProductLevels levels_of_pairs(std::string_view name, const Blocks& blocks);
Words pairs_peak(std::string_view name, Index rows, Index cols, Index columns,
                 const Blocks& blocks);

// v = rowsum(dO * O), in a phase v, with blocks v.rows and v.cols.
void plan_row_dots(const Problem& problem, const Memory& memory, Blocks& blocks);
PhaseCost row_dots_cost(const Problem& problem, const Blocks& blocks);
PhaseCost row_dots_level_cost(const Problem& problem, const Blocks& blocks, std::size_t level);
void row_dots_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks);
void row_dots(Machine& machine, const Blocks& blocks, const SlowMatrix& dO, const SlowMatrix& O,
              SlowMatrix& v);

// The extents of the matrix products of attention. All stages leave their results in slow memory.
struct Products {
  explicit Products(const Problem& problem) : Products(problem.shape, problem.sum_words) {}
  ProductShape S, h, scores, W, O, g;

 private:
  Products(const Shape& shape, Index sums)
      : S(ProductShape{shape.n, shape.d, shape.d}.weighing(sums)),
        h(ProductShape{shape.m, shape.d, shape.d}.weighing(sums)),
        scores(ProductShape{shape.n, shape.m, shape.d}.weighing(sums)),
        W(ProductShape{shape.n, shape.d, shape.m}.weighing(sums)),
        O(ProductShape{shape.n, shape.dv, shape.m}.weighing(sums)),
        g(ProductShape{shape.d, shape.d, shape.n}.weighing(sums)) {}
};

// Epilogues that several kernels share.

// f = exp(s - L).
class Exponentiated : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{
      .columns = 1,
      .row_reads = 1,
      .names = {.text = "f = exp(f - L)", .columns = {"L"}, .row_reads = "L"},
      .near = {.row_words = 1, .reads = 1, .writes = 1, .row_reads = 1}};
  explicit Exponentiated(const SlowMatrix& L, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), L_(L) {}
  RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, RowTiles& of,
             Range within) override;

 private:
  const SlowMatrix& L_;
};

// f = phi(s) of another activation than softmax.
class Activated : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{.names = {.text = "f = phi(s)"},
                                      .near = {.reads = 1, .writes = 1}};
  explicit Activated(Activation phi, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), phi_(phi) {}
  RowTiles enter(Machine&, const LivePairs&, const StayingRows*) override { return {}; }
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, RowTiles& of,
             Range within) override;

 private:
  Activation phi_;
};

// Leaves the scores unchanged.
class Unchanged : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{};
  explicit Unchanged(std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times) {}
  RowTiles enter(Machine&, const LivePairs&, const StayingRows*) override { return {}; }
  void apply(Machine&, Tile&, Range, const LivePairs&, RowTiles&, Range) override {}
};

// p = f (q - v), or p = phi'(s) q for other activations than softmax. It reads f, or s, from the
// place where p will be written. `times` multiplies p.
class ScoreGradient : public ScoreEpilogue {
 public:
  static constexpr Index kBeside = 1;  // the word of f, or of s, for each score
  static EpilogueCost cost(const Problem& problem) {
    const Index of_rows = problem.row_columns();
    return {.columns = of_rows,
            .tiles = 1,
            .reads = 1,
            .row_reads = of_rows,
            .names = {.text = text_for(problem, "read f; p = f (p - v)", "read s; p = phi'(s) p"),
                      .columns = {problem.normalised() ? "v" : ""},
                      .row_reads = "v"},
            .near = {.beside = kBeside,
                     .row_words = of_rows,
                     .reads = 2,
                     .writes = 1,
                     .row_reads = of_rows}};
  }
  // v is null for other activations than softmax.
  ScoreGradient(const SlowMatrix& f, const SlowMatrix* v, std::optional<float> times = std::nullopt)
      : f_(f), v_(v), times_(times) {}
  RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& q, Range part, const LivePairs& pairs, RowTiles& of,
             Range within) override;

 private:
  const SlowMatrix& f_;
  const SlowMatrix* v_;
  std::optional<float> times_;
};

// Leaves s unchanged and makes L, the log-sum-exp of each row. Between the tiles of a row, L and
// `sums` (n x 1) hold its maximum and its sum.
class Measured : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{
      .columns = 2,
      .scratch = 1,
      .row_reads_again = 2,
      .row_writes = 1,
      .row_writes_before = 1,
      .writes_raw = true,
      .names = {.text = "max, sum of exp(s); at last L = max + log sum",
                .columns = {"max", "sum"},
                .row_writes = "L"},
      .near = {.row_words = 3, .reads = 1, .writes = 1, .row_reads = 2, .row_writes = 2},
      .leaving = {.row_words = 2, .row_reads = 2, .row_writes = 1}};
  Measured(SlowMatrix& L, SlowMatrix& sums, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), L_(L), sums_(sums) {}
  RowTiles enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, RowTiles& of,
             Range within) override;
  void leave(Machine& machine, RowTiles& of, const LivePairs& pairs) override;

 private:
  SlowMatrix& L_;
  SlowMatrix& sums_;
  std::optional<OnlineSoftmax> softmax_;  // of the rows entered now
};
// How often Measured rescales the sum of a row, at most, as phase s.
Words rescales_by_tiles(const Problem& problem, const Blocks& blocks);

}  // namespace redblue
