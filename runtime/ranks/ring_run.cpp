#include "runtime/ranks/ring_run.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <utility>

namespace redblue {

// A matrix of streaming rows. Only rows that are in the home at the time can be read.
class RingRun::Passing final : public Backing {
 public:
  Passing(RingRun& ring, std::size_t matrix) : ring_(ring), matrix_(matrix) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    ring_.read(matrix_, rows, columns, to);
  }
  // The kernel reads the rows of a tile from one matrix after another. In this lap it does not read
  // earlier rows again.
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    ring_.bring(rows);
    ring_.transport_.progress();
    Backing::read_tile(rows, columns, orientation, to);
  }
  void write(Range, Range, std::span<const float>) override {
    throw std::logic_error("a matrix passes a rank, and is not written");
  }

 private:
  RingRun& ring_;
  std::size_t matrix_;
};

RingRun::RingRun(const GridPlan& of, const RingPass& pass, RankHome& home, Transport& transport)
    : of_(of), pass_(pass), home_(home), transport_(transport), rank_(transport.rank()) {
  for (Index slot = 0; slot < pass.slots; ++slot) {
    free_.push_back(slot);
  }
}

std::size_t RingRun::number_of(std::string_view matrix) const {
  const auto its = std::ranges::find(pass_.matrices, matrix, &Signature::name);
  return static_cast<std::size_t>(its - pass_.matrices.begin());
}

bool RingRun::passes(std::string_view matrix) const {
  return number_of(matrix) < pass_.matrices.size();
}

SlowMatrix RingRun::as_matrix(std::string_view matrix) {
  const std::size_t number = number_of(matrix);
  const Signature& its = pass_.matrices[number];
  const Shape& shape = of_.plan().problem.shape;
  return SlowMatrix(std::string(matrix), its.rows_of(shape), its.cols_of(shape),
                    std::make_unique<Passing>(*this, number))
      .holding(its.holds);
}

void RingRun::end_lap() {
  constexpr Index kEnd = std::numeric_limits<Index>::max();
  bring({kEnd, kEnd});
}

void RingRun::bring(Range rows) {
  let_go_before(rows.begin);
  while (next_ < pass_.pieces.size() && pass_.pieces[next_].rows.begin < rows.end) {
    take();
    let_go_before(rows.begin);
  }
}

void RingRun::let_go_before(Index row) {
  while (!here_.empty() && pass_.pieces[here_.front().piece].rows.end <= row) {
    let_go();
  }
}

std::span<float> RingRun::words_of(const Signature& matrix, const Here& here) {
  const Index cols = matrix.cols_of(of_.plan().problem.shape);
  const Range rows = pass_.pieces[here.piece].rows;
  const bool own = here.slot < 0;
  const Index row = of_.row_of(rank_);
  const Index first = !own                 ? here.slot * pass_.slot_rows
                      : of_queries(matrix) ? NumbersWithin(of_.queries(row)).below(rows.begin)
                                           : rows.begin - of_.own_keys(row, 0).begin;
  return home_.in_memory(own ? std::string(matrix.name) : passing_name(matrix.name),
                         {first * cols, (first + rows.size()) * cols});
}

void RingRun::take() {
  const auto start = std::chrono::steady_clock::now();
  const RingPass::Piece& piece = pass_.pieces[next_];
  Here here{.piece = next_, .slot = -1};
  const bool comes = piece.rank != rank_;
  if (comes) {
    if (free_.empty()) {
      throw std::logic_error("a rank of a ring reads more rows at a time than it has room for");
    }
    here.slot = free_.back();
    free_.pop_back();
  }
  std::vector<std::unique_ptr<Fetch>> come;
  for (const Signature& matrix : pass_.matrices) {
    here.words.push_back(words_of(matrix, here));
    if (comes) {
      come.push_back(transport_.begin_receive(matrix.name, of_.before(rank_), here.words.back()));
    }
  }
  for (const auto& message : come) {
    message->finish();
  }
  const Index after = of_.after(rank_);
  for (std::size_t k = 0; k < here.words.size() && piece.rank != after; ++k) {
    here.sends.push_back(transport_.begin_send(pass_.matrices[k].name, after, here.words[k]));
  }
  here_.push_back(std::move(here));
  ++next_;
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void RingRun::let_go() {
  const auto start = std::chrono::steady_clock::now();
  Here& first = here_.front();
  for (const auto& message : first.sends) {
    message->finish();
  }
  if (first.slot >= 0) {
    free_.push_back(first.slot);
  }
  here_.pop_front();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void RingRun::read(std::size_t matrix, Range rows, Range columns, std::span<float> to) const {
  const Index cols = pass_.matrices[matrix].cols_of(of_.plan().problem.shape);
  Index row = rows.begin;
  for (const Here& here : here_) {
    const Range there = pass_.pieces[here.piece].rows;
    for (; row < rows.end && there.begin <= row && row < there.end; ++row) {
      const Index first = (row - there.begin) * cols + columns.begin;
      std::ranges::copy(here.words[matrix].subspan(static_cast<std::size_t>(first),
                                                   static_cast<std::size_t>(columns.size())),
                        to.begin());
      to = to.subspan(static_cast<std::size_t>(columns.size()));
    }
  }
  if (row < rows.end) {
    throw std::logic_error(std::string(pass_.matrices[matrix].name) + " of a ring: row " +
                           std::to_string(row) + " has passed");
  }
}

}  // namespace redblue
