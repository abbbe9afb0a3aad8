#pragma once
// Streams rows past a rank of a ring while it works. The kernel sees the rows as matrices and reads
// them in order, tile by tile. A read waits for its rows from the rank before. Each piece goes to
// the rank after this one as soon as it has arrived. For one thread.
//
// No rank waits forever. Consider a rank that has taken the fewest pieces. The rank after it has
// taken at least as many, so it can only wait for the rank before it. That rank has not sent the
// next piece, so it has taken no more, and waits in the same way. This goes back to the rank that
// owns the next piece, which does not wait.

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "memsim/slow_matrix.hpp"
#include "runtime/ranks/rank_home.hpp"
#include "runtime/ranks/ring.hpp"

namespace redblue {

class RingRun {
 public:
  // All arguments must outlive it. All functions, and reads of the matrices, throw TransportError.
  // They throw std::logic_error for rows that have passed, or if a read needs more rows than the
  // home has room for.
  RingRun(const GridPlan& of, const RingPass& pass, RankHome& home, Transport& transport);

  [[nodiscard]] bool passes(std::string_view matrix) const;
  // Returns a matrix of all rows, for a kernel.
  [[nodiscard]] SlowMatrix as_matrix(std::string_view matrix);

  // Begin and end a lap. Between the two calls the kernel reads the rows in order, or some of them.
  // Every rank runs all laps, with work or without.
  void begin_lap() { next_ = 0; }
  void end_lap();
  // Returns the seconds spent in messages.
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  class Passing;
  struct Here {
    std::size_t piece;
    Index slot;                                // -1: the rank owns the piece
    std::vector<std::span<float>> words = {};  // for each matrix
    std::vector<std::unique_ptr<Fetch>> sends = {};
  };
  // bring() takes pieces up to these rows. let_go_before() releases pieces before a row.
  void bring(Range rows);
  void let_go_before(Index row);
  void take();
  void let_go();
  void read(std::size_t matrix, Range rows, Range columns, std::span<float> to) const;
  [[nodiscard]] std::span<float> words_of(const Signature& matrix, const Here& here);
  [[nodiscard]] std::size_t number_of(std::string_view matrix) const;

  const GridPlan& of_;
  const RingPass& pass_;
  RankHome& home_;
  Transport& transport_;
  Index rank_;
  std::size_t next_ = 0;  // the next piece of this lap
  std::deque<Here> here_;
  std::vector<Index> free_;
  double seconds_ = 0;
};

}  // namespace redblue
