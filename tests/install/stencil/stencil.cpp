// A user's kernel behind the gate: the sums of the 3 x 3 neighbours of each point of an n x m grid.
// It works on strips of columns. Three rows of a strip are in fast memory, with one more column on
// either side.

#include <algorithm>
#include <deque>
#include <vector>

#include <redblue/memsim/host_access.hpp>
#include <redblue/tools/gate/own_kernel.hpp>

using namespace redblue;  // NOLINT(google-build-using-namespace): an example

static Index strip(const Arguments& given) {
  return std::clamp<Index>((given["M"] - 6) / 4, 1, given["m"]);
}

static void neighbours(Machine& machine, const Arguments& given) {
  const Index n = given["n"], m = given["m"];
  SlowMatrix grid("grid", n, m);
  SlowMatrix sums("sums", n, m);
  HostAccess::put(grid, std::vector<float>(static_cast<std::size_t>(n * m), 1.0F));

  const Phase phase(machine, "sweep");
  for (const Range J : blocks(m, strip(given))) {
    const Range wide{std::max<Index>(J.begin - 1, 0), std::min(J.end + 1, m)};
    std::deque<Tile> rows;  // above, here, below
    rows.push_back(machine.read(grid.block({0, 1}, wide)));
    for (Index i = 0; i < n; ++i) {
      if (i + 1 < n) {
        rows.push_back(machine.read(grid.block({i + 1, i + 2}, wide)));
      }
      Tile sum = machine.initialize("sum", 1, J.size());
      for (const Tile& row : rows) {
        for (Index j = J.begin; j < J.end; ++j) {
          for (Index k = std::max(j - 1, wide.begin); k < std::min(j + 2, wide.end); ++k) {
            sum(0, j - J.begin) += row(0, k - wide.begin);
          }
        }
        machine.computed({.elementwise = 3 * J.size()});
      }
      machine.write(sum, sums.block({i, i + 1}, J));
      if (i > 0) {
        rows.pop_front();
      }
    }
  }
}

static std::vector<PhaseCost> words(const Arguments& given) {
  const Words n = given["n"], m = given["m"];
  const Index w = strip(given);
  const Index seams = ceil_div(given["m"], w) - 1;  // at each, two columns are read twice
  const Words rows = std::min<Index>(given["n"], 3);
  return {{"sweep", n * (m + 2 * seams), n * m, rows * (w + std::min<Index>(seams, 2)) + w, 0}};
}

REDBLUE_KERNEL("stencil/strips", neighbours, "n", "m").formula(words);
