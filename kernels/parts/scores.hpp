#pragma once
// The products of all rows of A (n x d) with all rows of B (m x d), and what becomes of each before
// it is written: a ScoreEpilogue makes it f, say, or p. A block of rows of A stays whole while B
// passes, or a tile of scores while both pass, as the blocks say (stays() in
// kernels/parts/stationary.hpp). Where B passes a wide tile, its pieces are a power of two of its
// rows, or a multiple of kPanel. What the epilogue must know of a row (L, v) stays with its rows;
// beside a tile there is no room, and it comes again for each.
//
// Under a mask live pairs alone are written. A block of rows brings the keys that it meets; a tile
// the rows and the keys that have a live pair in it, and a tile without one does not move.

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

// The names of what an epilogue does and moves, for a nest.
struct EpilogueNames {
  std::string_view text = {};                        // "f = exp(f - L)"
  ColumnNames columns = {};                          // those that stay
  std::string_view row_reads = {}, row_writes = {};  // what moves for each row
};

// What an epilogue costs beside the product and its n m writes. What rows have are sums, where it
// is not said.
struct EpilogueCost {
  Index columns = 0;            // words that stay for each row
  Index scratch = 0;            // words for each row of a piece
  Index tiles = 0;              // words beside each score of a piece
  Index reads = 0;              // for each score
  Index row_reads = 0;          // for each row, on every entry
  Index row_operands = 0;       // of operands, on every entry
  Index row_reads_again = 0;    // for each row, on every entry after its first
  Index row_writes = 0;         // for each row, on every leave
  Index row_writes_before = 0;  // for each row, on every leave before its last
  bool writes_raw = false;      // the scores are written as they are, before it; else what it makes
  EpilogueNames names = {};
  // In inner levels: of its pass over scores, if it makes one; and where it leaves rows.
  PassCost near = {}, leaving = {};
  bool scaled = false;  // the scores are multiplied by a factor, in a pass before it
  [[nodiscard]] EpilogueCost times_scale() const {
    EpilogueCost cost = *this;
    cost.scaled = true;
    return cost;
  }
};

// Whether rows of A stay with these blocks, or tiles of scores.
inline bool rows_stay(const ProductShape& of, const StationaryBlocks& by) {
  return by.depth >= of.depth;
}

// Rows of A that stay, as they are or transposed, and how many of another matrix's rows (or
// columns, where transposed) there is room for until the first scores.
struct StayingRows {
  const Tile& tile;
  bool transposed;
  Index room;
};

class ScoreEpilogue {
 public:
  virtual ~ScoreEpilogue() = default;
  // Up to two columns with a word for each row of these pairs, of which scores follow; `rows` is
  // null where a tile of scores stays. Rows that meet no key of theirs have any word.
  struct OfRows {
    Tile first, second;
  };
  virtual OfRows enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) = 0;
  // The rows `part` of s are scores of these pairs, whose own words are `within` those of the rows.
  // It makes each word of its own, or sets dead ones, which may be anything, first.
  virtual void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, OfRows& of,
                     Range within) = 0;
  virtual void leave(Machine&, OfRows&, const LivePairs&) {}
  // The inner levels in which it works until the phase ends; they live as long.
  void work_in(const ProductLevels& levels) { levels_ = &levels; }
  const bool writes_raw = false;
  const std::optional<float> scale;  // the scores are multiplied by it before anything else

 protected:
  explicit ScoreEpilogue(bool raw = false, std::optional<float> times = std::nullopt)
      : writes_raw(raw), scale(times) {}
  [[nodiscard]] const ProductLevels& levels() const { return *levels_; }
  // Calls visit(rows, columns) for parts of the scores of these pairs.
  template <class Borrowed, class Visit>
  void over(Machine& machine, const LivePairs& pairs, Index beside, const Borrowed& near,
            const Visit& visit) const {
    pass_over(machine, levels(), &ProductBlocks::cols, beside, pairs.queries().size(),
              pairs.keys().size(), near, visit);
  }

 private:
  const ProductLevels* levels_ = nullptr;
};

// A column's words for these rows, of those that meet some of these keys; else 0.
Tile live_column(Machine& machine, const SlowMatrix& column, const LivePairs& pairs);

PhaseCost scores_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                      const EpilogueCost& epilogue);
PhaseCost scores_level_cost(std::string path, const Problem& problem, const StationaryBlocks& by,
                            const EpilogueCost& epilogue, std::size_t level);
// `names` are those of the result, of A and of B^T.
void scores_nest(NestWriter& nest, const ProductNames& names, const Problem& problem,
                 const StationaryBlocks& by, const EpilogueCost& epilogue);
// As a phase of a kernel whose plan has blocks of that name.
void scores_phase(Machine& machine, std::string_view name, const Plan& plan, const SlowMatrix& A,
                  const SlowMatrix& B, ScoreEpilogue& epilogue, SlowMatrix& result);

// The blocks of fewest words, or those in which rows of A stay, for scores under a mask; of a cost
// with and without it.
StationaryBlocks fit_live_scores(const Problem& problem, Index M, Objective objective,
                                 const StationaryCost& cost, const StationaryCost& all_live);
StationaryBlocks fit_score_rows(const Problem& problem, Index M, Objective objective,
                                const StationaryCost& cost);
// A matrix of scores, which keeps those of live pairs.
SlowMatrix score_matrix(Workspace& workspace, std::string name, const Problem& problem);

// Two tiles at a time, rows x cols of both, and `columns` words for each row: the largest that fit,
// as the blocks NAME.rows and NAME.cols, of inner levels L1.NAME.rows and so on; and these.
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

// The products of attention from stage to stage, all of them in the slow store.
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

// The epilogues that several kernels have.

// f = exp(s - L).
class Exponentiated : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{
      .columns = 1,
      .row_reads = 1,
      .names = {.text = "f = exp(f - L)", .columns = {"L"}, .row_reads = "L"},
      .near = {.of_rows = 1, .reads = 1, .writes = 1, .row_reads = 1}};
  explicit Exponentiated(const SlowMatrix& L, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), L_(L) {}
  OfRows enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, OfRows& of,
             Range within) override;

 private:
  const SlowMatrix& L_;
};

// f = phi(s) of an activation that is no softmax.
class Activated : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{.names = {.text = "f = phi(s)"},
                                      .near = {.reads = 1, .writes = 1}};
  explicit Activated(Activation phi, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), phi_(phi) {}
  OfRows enter(Machine&, const LivePairs&, const StayingRows*) override { return {}; }
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, OfRows& of,
             Range within) override;

 private:
  Activation phi_;
};

// The products as they are.
class Unchanged : public ScoreEpilogue {
 public:
  static constexpr EpilogueCost kCost{};
  explicit Unchanged(std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times) {}
  OfRows enter(Machine&, const LivePairs&, const StayingRows*) override { return {}; }
  void apply(Machine&, Tile&, Range, const LivePairs&, OfRows&, Range) override {}
};

// p = f (q - v), or p = phi'(s) q, with f, or s, where p will be; perhaps times a factor.
class ScoreGradient : public ScoreEpilogue {
 public:
  static constexpr Index kBeside = 1;  // f
  static EpilogueCost cost(const Problem& problem) {
    const Index of_rows = problem.row_columns();
    return {
        .columns = of_rows,
        .tiles = 1,
        .reads = 1,
        .row_reads = of_rows,
        .names = {.text = text_for(problem, "read f; p = f (p - v)", "read s; p = phi'(s) p"),
                  .columns = {problem.normalised() ? "v" : ""},
                  .row_reads = "v"},
        .near = {
            .beside = kBeside, .of_rows = of_rows, .reads = 2, .writes = 1, .row_reads = of_rows}};
  }
  // Without v where there is none.
  ScoreGradient(const SlowMatrix& f, const SlowMatrix* v, std::optional<float> times = std::nullopt)
      : f_(f), v_(v), times_(times) {}
  OfRows enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& q, Range part, const LivePairs& pairs, OfRows& of,
             Range within) override;

 private:
  const SlowMatrix& f_;
  const SlowMatrix* v_;
  std::optional<float> times_;
};

// s as it is; L, its rows' log-sum-exp, is made along the way. Between tiles, L and `sums` (n x 1)
// hold maxima and sums.
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
      .near = {.of_rows = 3, .reads = 1, .writes = 1, .row_reads = 2, .row_writes = 2},
      .leaving = {.of_rows = 2, .row_reads = 2, .row_writes = 1}};
  Measured(SlowMatrix& L, SlowMatrix& sums, std::optional<float> times = std::nullopt)
      : ScoreEpilogue(kCost.writes_raw, times), L_(L), sums_(sums) {}
  OfRows enter(Machine& machine, const LivePairs& pairs, const StayingRows* rows) override;
  void apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, OfRows& of,
             Range within) override;
  void leave(Machine& machine, OfRows& of, const LivePairs& pairs) override;

 private:
  SlowMatrix& L_;
  SlowMatrix& sums_;
  std::optional<OnlineSoftmax> softmax_;  // of the rows that are entered
};
// How often it rescales a row's sum, as a phase s.
Words rescales_by_tiles(const Problem& problem, const Blocks& blocks);

}  // namespace redblue
