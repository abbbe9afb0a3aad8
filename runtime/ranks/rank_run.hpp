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
#include "runtime/ranks/rank_steps.hpp"

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

  // The rows that changed since the last call, of each matrix, in order and apart from each other:
  // by their numbers among those that lie here. Requires: note_changes() before they changed.
  std::map<std::string, Ranges> take_changes();
  void note_changes() { noting_ = true; }
  // Notes rows that no kernel wrote, by their numbers as of rows().
  void note(std::string_view matrix, Range rows);
  // The names of all matrices, and rows by their numbers among those that lie here.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] Index lying_rows(std::string_view matrix) const;
  [[nodiscard]] std::span<float> lying(std::string_view matrix, Range rows);

 private:
  struct Held {
    HomeMatrix about;
    std::vector<float> words;  // of one row at least
    Ranges changed = {};
    void note(Range rows);  // numbers as of rows()
  };
  // `words` are these rows.
  SlowMatrix for_kernel(Held& its, std::string name, Range rows, std::unique_ptr<Backing> words);
  [[nodiscard]] Held& held(std::string_view matrix);

  std::map<std::string, Held, std::less<>> held_;
  bool noting_ = false;
};

struct RankRun {
  RunCounts arena;
  double seconds_in_links = 0;  // waiting for messages
};

// Runs the rank's part; the home's own rows of operands are there. Every rank of the grid calls.
// Afterwards own rows of results are there, and g at the rank of the last segment. Without `steps`
// all of it at once. Throws: what the kernel throws; TransportError.
RankRun run_rank(const RankPart& part, RankHome& home, Transport& transport,
                 const RankSteps* steps = nullptr);

}  // namespace redblue
