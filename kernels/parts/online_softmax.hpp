#pragma once
// What rows of scores are summed up into while their keys come in blocks: relative to the largest
// score so far, and rescaled where that rises.

#include <initializer_list>

#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// The maximum of each row's scores and the sum of e = exp(s - maximum), over the keys so far.
class OnlineSoftmax {
 public:
  static constexpr Index kWords = 2;  // of each row

  // Of no keys.
  OnlineSoftmax(Machine& machine, Index rows);
  // Of the rows I as write() left them.
  OnlineSoftmax(Machine& machine, const SlowMatrix& maxima, const SlowMatrix& sums, Range I);

  // The rows K meet scores s: their maximum rises to the largest of them, and their sum and the
  // accumulators (rows K of sums with weights e) are rescaled. `factors` is a word for each row.
  void raise(const ConstView& s, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  void raise(const Transposed<ConstView>& s_t, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  // The scores become e, and the sum grows by them. Requires: raise() has met them.
  void add(const View& s, Range K);
  void add(const Transposed<View>& s_t, Range K);
  // The same, and dots_i += sum_j e_ij q_ij.
  void add(const Transposed<View>& s_t, Range K, const Transposed<ConstView>& q_t,
           const View& dots);

  // a_i /= the sum of row i, for those of the rows K that have met a key; or for all rows.
  void divide(const View& a, Range K) const;
  void divide(Tile& accumulator) const;
  // L, where the maximum was; nothing is left of the sum.
  [[nodiscard]] Tile log_sum_exp();
  void write(Machine& machine, SlowMatrix& maxima, SlowMatrix& sums, Range I);

 private:
  void rescale(Range K, const View& factors, std::initializer_list<View> accumulators);

  Tile maximum_, sum_;
};

// The mean of q_i over the keys so far, with weights e. W = sum e (q - v) A2 cancels where all q of
// a row have much in common; so U = sum e (q - mean) A2 is kept, which follows the mean as that
// moves by delta: U -= delta Z, with Z = sum e A2. After the last key the mean is v, and W = U /
// sum.
class RunningMean {
 public:
  static constexpr Index kWords = 1;  // of each row

  RunningMean(Machine& machine, Index rows);
  // Of the rows K.
  [[nodiscard]] ConstView of(Range K) const { return mean_.part(K); }
  // Of all rows: v, after the last key.
  [[nodiscard]] Tile take() { return std::move(mean_); }
  // The scores become e, q - mean becomes e (q - mean) with the new mean, and U follows it; `delta`
  // is a word for each row, 0 at first. Requires: q_t is q - of(K); raise() met these scores, and
  // rescaled U and Z, which these keys are not in yet.
  void follow(OnlineSoftmax& softmax, Range K, const View& s_t, const View& q_t, const View& delta,
              const View& U, const ConstView& Z);

 private:
  Tile mean_;
};

}  // namespace redblue
