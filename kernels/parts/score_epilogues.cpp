// The epilogues that several kernels have.

#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/parts/scores.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Tile live_column(Machine& machine, const SlowMatrix& column, const LivePairs& pairs) {
  return machine.read(
      LiveRows(column, pairs.problem().mask, pairs.met())->row_block(pairs.queries()));
}

ScoreEpilogue::OfRows Exponentiated::enter(Machine& machine, const LivePairs& pairs,
                                           const StayingRows*) {
  return {live_column(machine, L_, pairs), {}};
}

void Exponentiated::apply(Machine&, Tile& s, Range part, const LivePairs&, OfRows& of,
                          Range within) {
  exponentiate(s.part(part), of.first.part(within), s.part(part));
}

void Activated::apply(Machine&, Tile& s, Range part, const LivePairs&, OfRows&, Range) {
  activate(phi_, s.part(part), s.part(part));
}

ScoreEpilogue::OfRows ScoreGradient::enter(Machine& machine, const LivePairs& pairs,
                                           const StayingRows*) {
  return {v_ != nullptr ? live_column(machine, *v_, pairs) : Tile(), {}};
}

void ScoreGradient::apply(Machine& machine, Tile& q, Range part, const LivePairs& pairs, OfRows& of,
                          Range within) {
  const Tile f = machine.read(f_.block(pairs.queries(), pairs.keys()));  // f_PJ (p, c)
  make_p(pairs.problem(), f, q.part(part), of.first, within, q.part(part));
  if (times_) {
    redblue::scale(q.part(part), *times_);
  }
}

ScoreEpilogue::OfRows Measured::enter(Machine& machine, const LivePairs& pairs,
                                      const StayingRows*) {
  const Range I = pairs.queries();
  if (const Ranges before = pairs.met_before(); before.empty()) {
    softmax_.emplace(machine, I.size());
  } else {
    const Mask& mask = pairs.problem().mask;
    softmax_.emplace(machine, *LiveRows(std::as_const(L_), mask, before, kNoMaximum),
                     *LiveRows(std::as_const(sums_), mask, before), I);
  }
  return {};
}

void Measured::apply(Machine& machine, Tile& scores, Range part, const LivePairs& pairs, OfRows&,
                     Range within) {
  Tile rescale = machine.initialize("rescale", part.size());
  const View s = scores.part(part);
  pairs.set_dead(s, kDeadScore);
  softmax_->raise(s, within, rescale);
  softmax_->add(s, within);
}

void Measured::leave(Machine& machine, OfRows&, const LivePairs& pairs) {
  const Range I = pairs.queries();
  const Mask& mask = pairs.problem().mask;
  const Ranges after = pairs.met_after();
  if (!after.empty()) {
    softmax_->write(machine, *LiveRows(L_, mask, after), *LiveRows(sums_, mask, after), I);
  }
  if (const Ranges last = without(pairs.met(), after); !last.empty()) {
    machine.write(softmax_->log_sum_exp(), LiveRows(L_, mask, last)->row_block(I));
  }
  softmax_.reset();
}

}  // namespace redblue
