#include "kernels/parts/online_softmax.hpp"

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {

OnlineSoftmax::OnlineSoftmax(Machine& machine, Index rows)
    : maximum_(machine.initialize("max", rows, 1, kNoMaximum)),
      sum_(machine.initialize("sum", rows)) {}

OnlineSoftmax::OnlineSoftmax(Machine& machine, const SlowMatrix& maxima, const SlowMatrix& sums,
                             Range I)
    : maximum_(machine.read(maxima.row_block(I))), sum_(machine.read(sums.row_block(I))) {}

void OnlineSoftmax::raise(const ConstView& s, Range K, const View& factors,
                          std::initializer_list<View> accumulators) {
  raise_maximum(s, maximum_.part(K), factors);
  rescale(K, factors, accumulators);
}

void OnlineSoftmax::raise(const Transposed<ConstView>& s_t, Range K, const View& factors,
                          std::initializer_list<View> accumulators) {
  raise_maximum(s_t, maximum_.part(K), factors);
  rescale(K, factors, accumulators);
}

void OnlineSoftmax::rescale(Range K, const View& factors,
                            std::initializer_list<View> accumulators) {
  scale_rows(sum_.part(K), factors);
  for (const View& accumulator : accumulators) {
    scale_rows(accumulator, factors);
  }
}

void OnlineSoftmax::add(const View& s, Range K) {
  exponentiate(s, maximum_.part(K), s);
  add_row_sums(s, sum_.part(K));
}

void OnlineSoftmax::add(const Transposed<View>& s_t, Range K) {
  exponentiate(s_t, maximum_.part(K), sum_.part(K));
}

void OnlineSoftmax::add(const Transposed<View>& s_t, Range K, const Transposed<ConstView>& q_t,
                        const View& dots) {
  exponentiate(s_t, maximum_.part(K), sum_.part(K), q_t, dots);
}

void OnlineSoftmax::divide(const View& a, Range K) const {
  divide_unless_0(a, sum_.part(K));
}

void OnlineSoftmax::divide(Tile& accumulator, const Levels& levels) const {
  each_rows(accumulator.machine(), levels, &LevelBlocks::rows, accumulator.rows(),
            {{accumulator, Axis::staying, Axis::whole, Use::changes},
             {sum_, Axis::staying, Axis::whole, Use::reads}},
            [&](Range S) {
              const View a = accumulator.part(S);
              divide_rows(a, sum_.part(S), a);
            });
}

Tile OnlineSoftmax::log_sum_exp(const Levels& levels) {
  each_rows(maximum_.machine(), levels, &LevelBlocks::rows, maximum_.rows(),
            {{maximum_, Axis::staying, Axis::whole, Use::changes},
             {sum_, Axis::staying, Axis::whole, Use::reads}},
            [&](Range S) { add_logarithm(maximum_.part(S), sum_.part(S)); });
  sum_.reset();
  return std::move(maximum_);
}

void OnlineSoftmax::write(Machine& machine, SlowMatrix& maxima, SlowMatrix& sums, Range I) {
  machine.write(sum_, sums.row_block(I));
  machine.write(maximum_, maxima.row_block(I));
}

RowNormaliser::RowNormaliser(Machine& machine, const Problem& problem, Index rows)
    : machine_(&machine), activation_(problem.activation) {
  if (problem.normalised()) {
    softmax_.emplace(machine, rows);
  }
}

RowNormaliser::RowNormaliser(Machine& machine, const Problem& problem, const SlowMatrix* maxima,
                             const SlowMatrix* sums, Range I)
    : machine_(&machine), activation_(problem.activation) {
  if (problem.normalised()) {
    softmax_.emplace(machine, *maxima, *sums, I);
  }
}

void RowNormaliser::apply(Tile& s, const LivePairs& pairs, Tile& accumulator) {
  if (!softmax_) {
    activate(activation_, s, s);
    pairs.set_dead(View(s), 0);
    return;
  }
  pairs.set_dead(View(s), kDeadScore);
  const Range all{0, s.rows()};
  {
    Tile rescale = machine_->initialize("rescale", s.rows());
    softmax_->raise(ConstView(s), all, rescale, {accumulator});
  }
  softmax_->add(View(s), all);
}

void RowNormaliser::apply(const Transposed<View>& s_t, Range K, const LivePairs& pairs,
                          Tile& factors, std::initializer_list<View> accumulators) {
  if (!softmax_) {
    activate(activation_, s_t.of, s_t.of);
    pairs.set_dead(s_t, 0);
    return;
  }
  pairs.set_dead(s_t, kDeadScore);
  softmax_->raise(s_t, K, factors.part({0, K.size()}), accumulators);
  softmax_->add(s_t, K);
}

void RowNormaliser::divide(Tile& accumulator, const Levels& levels) const {
  if (softmax_) {
    softmax_->divide(accumulator, levels);
  }
}

void RowNormaliser::divide_unless_0(Tile& accumulator) const {
  if (softmax_) {
    softmax_->divide(accumulator, {0, accumulator.rows()});
  }
}

void RowNormaliser::write_L(const Operands& io, std::string_view name, Range I,
                            const Levels& levels) {
  write_L(softmax_ ? &io.out(name) : nullptr, I, levels);
}

void RowNormaliser::write_L(SlowMatrix* L, Range I, const Levels& levels) {
  if (softmax_) {
    machine_->write(softmax_->log_sum_exp(levels), L->row_block(I));
  }
}

void RowNormaliser::write(SlowMatrix* maxima, SlowMatrix* sums, Range I) {
  if (softmax_) {
    softmax_->write(*machine_, *maxima, *sums, I);
  }
}

RunningMean::RunningMean(Machine& machine, Index rows) : mean_(machine.initialize("mean", rows)) {}

void RunningMean::follow(OnlineSoftmax& softmax, Range K, const View& s_t, const View& q_t,
                         const View& delta, const View& U, const ConstView& Z) {
  softmax.add(transposed(s_t), K, transposed(q_t), delta);
  softmax.divide(delta, K);
  add(mean_.part(K), delta);
  subtract_scaled_rows(U, delta, Z);
  softmax_gradient(transposed(s_t), delta, transposed(q_t));
}

}  // namespace redblue
