#pragma once
// One rank of a run on a grid: its home, what it brings from other ranks, and the kernel on that.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/phase.hpp"
#include "memsim/ranks/transport.hpp"
#include "memsim/slow_matrix.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {

// The matrices of a rank, in main memory.
class RankHome {
 public:
  explicit RankHome(const RankPart& part);

  // Some rows of a matrix, by their numbers in the place; and those that the rank begins with, or
  // ends with. Requires: all are there, next to each other.
  [[nodiscard]] std::span<float> rows(std::string_view matrix, Range rows);
  [[nodiscard]] std::span<float> own(std::string_view matrix);
  [[nodiscard]] const HomeMatrix& about(std::string_view matrix) const;
  [[nodiscard]] bool has(std::string_view matrix) const { return held_.contains(matrix); }
  // A matrix of them for a kernel, under its name or another.
  [[nodiscard]] SlowMatrix as_matrix(std::string_view matrix, std::string_view called = {});
  [[nodiscard]] SlowMatrix own_as_matrix(std::string_view matrix);
  [[nodiscard]] Words words() const;

 private:
  struct Held {
    HomeMatrix about;
    std::vector<float> words;  // of one row at least
  };
  [[nodiscard]] Held& held(std::string_view matrix);

  std::map<std::string, Held, std::less<>> held_;
};

struct RankRun {
  RunCounts arena;
  double seconds_in_links = 0;  // waiting for messages
};

// Runs the rank's part; the home's own rows of operands are there. Every rank of the grid calls.
// Afterwards own rows of results are there, and g at the rank of the last segment. Throws: what the
// kernel throws; TransportError.
RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport);

}  // namespace redblue
