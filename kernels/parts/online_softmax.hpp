#pragma once
// The online softmax: sums over rows of scores while their keys come in blocks. The sums are
// relative to the largest score so far, and are rescaled when it rises.

#include <initializer_list>
#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/problem.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// The maximum of each row's scores and the sum of e = exp(s - maximum), over the keys so far.
class OnlineSoftmax {
 public:
  static constexpr Index kWords = 2;  // for each row

  // Starts with no keys.
  OnlineSoftmax(Machine& machine, Index rows);
  // Continues with the rows I that write() left in slow memory.
  OnlineSoftmax(Machine& machine, const SlowMatrix& maxima, const SlowMatrix& sums, Range I);

  // Raises the maximum of the rows K to the largest of their scores s. Rescales their sum and the
  // accumulators (rows K of sums with weights e). `factors` is scratch, one word for each row.
  void raise(const ConstView& s, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  void raise(const Transposed<ConstView>& s_t, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  // Turns the scores into e, and adds them to the sum. Requires: a call of raise() with these
  // scores.
  void add(const View& s, Range K);
  void add(const Transposed<View>& s_t, Range K);
  // The same, and computes dots_i += sum_j e_ij q_ij.
  void add(const Transposed<View>& s_t, Range K, const Transposed<ConstView>& q_t,
           const View& dots);

  // Divide each row by its sum. The first divides only rows of K that have met a key, the second
  // all rows.
  void divide(const View& a, Range K) const;
  void divide(Tile& accumulator, const Levels& levels = {}) const;
  // Returns L in the tile of the maximum. The sum is deleted.
  [[nodiscard]] Tile log_sum_exp(const Levels& levels = {});
  void write(Machine& machine, SlowMatrix& maxima, SlowMatrix& sums, Range I);
  // The tiles that are kept, for all rows.
  struct State {
    const Tile &maximum, &sum;
  };
  [[nodiscard]] State state() const { return {maximum_, sum_}; }

 private:
  void rescale(Range K, const View& factors, std::initializer_list<View> accumulators);

  Tile maximum_, sum_;
};

// Turns rows of scores into weights before they meet their values. A softmax uses e of an online
// softmax, and divides by the sums of the rows at the end. Another activation uses f and keeps no
// words for a row.
class RowNormaliser {
 public:
  // The words kept for each row.
  static Index words(const Problem& problem) { return OnlineSoftmax::kWords * problem.row_words(); }

  // Starts with no keys.
  RowNormaliser(Machine& machine, const Problem& problem, Index rows);
  // Continues with the rows I that write() left. Other activations read no words.
  RowNormaliser(Machine& machine, const Problem& problem, const SlowMatrix* maxima,
                const SlowMatrix* sums, Range I);

  // Turns the scores of all rows into weights, 0 for dead pairs, and rescales the accumulator. It
  // takes tiles, not views: it makes a tile for the factors, and no view outlives that.
  void apply(Tile& s, const LivePairs& pairs, Tile& accumulator);
  // The same for the rows K. `factors` is scratch, one word for each of them.
  void apply(const Transposed<View>& s_t, Range K, const LivePairs& pairs, Tile& factors,
             std::initializer_list<View> accumulators);

  void divide(Tile& accumulator, const Levels& levels = {}) const;
  void divide_unless_0(Tile& accumulator) const;
  // write_L() writes L of the rows I, and ends the sums. write() writes the maxima and sums between
  // two passes.
  void write_L(const Operands& io, std::string_view name, Range I, const Levels& levels = {});
  void write_L(SlowMatrix* L, Range I, const Levels& levels = {});
  void write(SlowMatrix* maxima, SlowMatrix* sums, Range I);

  // Requires: the activation is softmax.
  [[nodiscard]] OnlineSoftmax& softmax() { return *softmax_; }
  // Empty tiles for other activations.
  [[nodiscard]] OnlineSoftmax::State state() const {
    return softmax_ ? softmax_->state() : OnlineSoftmax::State{none_, none_};
  }

 private:
  Machine* machine_;
  Activation activation_;
  std::optional<OnlineSoftmax> softmax_;
  Tile none_;
};

// The mean of q_i over the keys so far, weighted with e.
//
// W = sum e (q - v) A2 cancels if all q of a row have much in common. So a kernel keeps U = sum e
// (q - mean) A2. When the mean moves by delta, U follows it: U -= delta Z, with Z = sum e A2. After
// the last key the mean is v, and W = U / sum.
class RunningMean {
 public:
  static constexpr Index kWords = 1;  // for each row

  RunningMean(Machine& machine, Index rows);
  // The means of the rows K.
  [[nodiscard]] ConstView of(Range K) const { return mean_.part(K); }
  [[nodiscard]] const Tile& mean() const { return mean_; }
  // Returns the means of all rows: v, after the last key.
  [[nodiscard]] Tile take() { return std::move(mean_); }
  // Turns the scores into e, and q - mean into e (q - mean) with the new mean. U follows the mean.
  // `delta` is scratch, one word for each row, 0 at first. Requires: q_t is q - of(K). raise() has
  // met these scores and rescaled U and Z. U and Z do not include these keys yet.
  void follow(OnlineSoftmax& softmax, Range K, const View& s_t, const View& q_t, const View& delta,
              const View& U, const ConstView& Z);

 private:
  Tile mean_;
};

}  // namespace redblue
