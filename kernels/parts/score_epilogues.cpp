// Epilogues that several kernels share.

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

ScoreEpilogue::RowTiles Exponentiated::enter(Machine& machine, const LivePairs& pairs,
                                             const StayingRows*) {
  return {live_column(machine, L_, pairs), {}};
}

void Exponentiated::apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs,
                          RowTiles& of, Range within) {
  over(
      machine, pairs, 0,
      [&]() -> std::vector<Near> {
        return {of_pairs(s, Use::changes, part.begin),
                near_rows(of.first, Use::reads, within.begin)};
      },
      [&](Range rows, Range columns) {
        const View f = s.part(part_of(part, rows), columns);
        exponentiate(f, of.first.part(part_of(within, rows)), f);
      });
}

void Activated::apply(Machine& machine, Tile& s, Range part, const LivePairs& pairs, RowTiles&,
                      Range) {
  over(
      machine, pairs, 0,
      [&]() -> std::vector<Near> { return {of_pairs(s, Use::changes, part.begin)}; },
      [&](Range rows, Range columns) {
        const View f = s.part(part_of(part, rows), columns);
        activate(phi_, f, f);
      });
}

ScoreEpilogue::RowTiles ScoreGradient::enter(Machine& machine, const LivePairs& pairs,
                                             const StayingRows*) {
  return {v_ != nullptr ? live_column(machine, *v_, pairs) : Tile(), {}};
}

void ScoreGradient::apply(Machine& machine, Tile& q, Range part, const LivePairs& pairs,
                          RowTiles& of, Range within) {
  const Tile f = machine.read(f_.block(pairs.queries(), pairs.keys()),
                              cut_of(levels(), &ProductBlocks::cols));  // f_PJ (p, c)
  over(
      machine, pairs, kBeside,
      [&]() -> std::vector<Near> {
        return {of_pairs(q, Use::changes, part.begin), of_pairs(f, Use::reads),
                near_rows(of.first, Use::reads, within.begin)};
      },
      [&](Range rows, Range columns) {
        const View p = q.part(part_of(part, rows), columns);
        make_p(pairs.problem(), f.part(rows, columns), p, of.first, part_of(within, rows), p);
        if (times_) {
          redblue::scale(p, *times_);
        }
      });
}

ScoreEpilogue::RowTiles Measured::enter(Machine& machine, const LivePairs& pairs,
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

void Measured::apply(Machine& machine, Tile& scores, Range part, const LivePairs& pairs, RowTiles&,
                     Range within) {
  Tile rescale = machine.initialize("rescale", part.size());
  const OnlineSoftmax::State kept = softmax_->state();
  over(
      machine, pairs, 0,
      [&]() -> std::vector<Near> {
        return {of_pairs(scores, Use::changes, part.begin),
                near_rows(kept.maximum, Use::changes, within.begin),
                near_rows(kept.sum, Use::changes, within.begin), near_rows(rescale, Use::scratch)};
      },
      [&](Range rows, Range columns) {
        const View s = scores.part(part_of(part, rows), columns);
        pairs.part(rows, columns).set_dead(s, kDeadScore);
        softmax_->raise(s, part_of(within, rows), rescale.part(rows));
        softmax_->add(s, part_of(within, rows));
      });
}

void Measured::leave(Machine& machine, RowTiles&, const LivePairs& pairs) {
  const Range I = pairs.queries();
  const Mask& mask = pairs.problem().mask;
  const Ranges after = pairs.met_after();
  if (!after.empty()) {
    softmax_->write(machine, *LiveRows(L_, mask, after), *LiveRows(sums_, mask, after), I);
  }
  if (const Ranges last = without(pairs.met(), after); !last.empty()) {
    machine.write(softmax_->log_sum_exp(pass_levels(levels(), &ProductBlocks::cols, 0)),
                  LiveRows(L_, mask, last)->row_block(I));
  }
  softmax_.reset();
}

}  // namespace redblue
