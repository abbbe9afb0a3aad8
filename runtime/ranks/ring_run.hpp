#pragma once
// The rows that pass a rank of a ring while it works. A kernel sees them as matrices and reads all
// rows in their order, a tile after the other. A read waits for its rows from the rank before. Each
// piece goes to the rank after this one as soon as it has come. One thread.
//
// No rank waits for ever: consider a rank that has taken the fewest pieces. The rank after it has
// taken as many, so it waits for the rank before it. That one has taken as many and not more, and
// waits in the same way, back to the rank that begins with the next piece and waits for none.

#include <deque>
#include <map>
#include <memory>
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
  // All must outlive it. Throw (all, and reads): TransportError; std::logic_error for rows that
  // have passed, or more rows at a time than the home has room for.
  RingRun(const GridPlan& of, const RingPass& pass, RankHome& home, Transport& transport);

  [[nodiscard]] bool passes(std::string_view matrix) const;
  // All rows of a matrix, for a kernel.
  [[nodiscard]] SlowMatrix as_matrix(std::string_view matrix);

  // A lap: between the two calls all rows are read, or some, in their order. Every rank has all
  // laps, with work or without.
  void begin_lap() { next_ = 0; }
  void end_lap();
  // In messages.
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  class Passing;
  struct Here {
    std::size_t piece;
    Index slot;  // -1: at home
    std::vector<std::unique_ptr<Fetch>> sends = {};
  };
  // Takes pieces up to these rows; lets go of pieces before a row.
  void bring(Range rows);
  void let_go_before(Index row);
  void take();
  void let_go();
  void read(const Signature& matrix, Range rows, Range columns, std::span<float> to);
  [[nodiscard]] std::span<float> words_of(const Signature& matrix, const Here& here);

  const GridPlan& of_;
  const RingPass& pass_;
  RankHome& home_;
  Transport& transport_;
  Index rank_;
  std::size_t next_ = 0;  // of the pieces of this lap
  std::deque<Here> here_;
  std::vector<Index> free_;
  double seconds_ = 0;
};

}  // namespace redblue
