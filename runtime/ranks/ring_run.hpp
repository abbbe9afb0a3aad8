#pragma once
// The rows that pass a rank of a ring while it works. A kernel sees them as matrices and reads all
// rows in their order, a tile after the other. A read waits for its rows from the rank before. Each
// piece goes to the rank after this one as soon as it has come. One thread.
//
// No rank waits for ever: consider a rank that has taken the fewest pieces. The rank after it has
// taken as many, so it waits for the rank before it. That one has taken as many and not more, and
// waits in the same way, back to the rank that begins with the next piece and waits for none.

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
    Index slot;                                // -1: the rank begins with it
    std::vector<std::span<float>> words = {};  // of each matrix
    std::vector<std::unique_ptr<Fetch>> sends = {};
  };
  // Takes pieces up to these rows; lets go of pieces before a row.
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
  std::size_t next_ = 0;  // of the pieces of this lap
  std::deque<Here> here_;
  std::vector<Index> free_;
  double seconds_ = 0;
};

}  // namespace redblue
