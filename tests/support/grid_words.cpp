#include "tests/support/grid_words.hpp"

#include <algorithm>
#include <string>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

Index units_of(const GridTask& task) {
  return ceil_div(task.problem.shape.n, task.unit_rows);
}

// Returns the number of grid rows that have units.
Index working_rows(const GridTask& task) {
  return std::min(units_of(task), task.grid.rows);
}

void check(const GridTask& task) {
  const auto [rows, columns, groups] = task.grid;
  const Problem& problem = task.problem;
  require(problem.shape.n > 0 && problem.shape.m > 0 && problem.shape.d > 0 && problem.shape.dv > 0,
          "n, m, d and dv are at least 1");
  require(problem.mask.full() && problem.sparsity.dense(), "a grid of all pairs");
  require(problem.wanted.all(), "a grid that makes all results");
  require(task.unit_rows > 0, "a unit has at least one row");
  require(rows > 0 && columns > 0, "a grid has at least one row and one column");
  require(columns <= groups && groups <= problem.shape.m,
          "a grid has no more columns than key groups, and no more of these than keys");
}

// How many times a rank receives and sends the running sum. In each key group, each working rank of
// a column adds a part. With one working grid row, a rank adds all its key groups in one stop.
struct Hops {
  Index in, out;
};
Hops hops(const GridTask& task, const RankShare& share) {
  if (!share.works()) {
    return {0, 0};
  }
  const Index stops = working_rows(task) > 1 ? share.groups.size() : 1;
  const bool first = share.units.begin == 0 && share.groups.begin == 0;
  const bool last = share.units.end == units_of(task) && share.groups.end == task.grid.groups;
  return {stops - (first ? 1 : 0), stops - (last ? 1 : 0)};
}

Index largest_group(const GridTask& task) {
  return ceil_div(task.problem.shape.m, task.grid.groups);
}

}  // namespace

PassWords pass_words(const GridTask& task) {
  const Index d = task.problem.shape.d, dv = task.problem.shape.dv;
  const Index one = task.problem.row_words();  // L, v, a mean, a maximum or a sum
  const Index key = task.problem.key_words().value();
  const Index square = (Words(d) * d).value();  // X, Y or g
  const bool forward = task.pass == Pass::forward || task.pass == Pass::attention;
  PassWords words{.row_in = forward ? d : d + dv,
                  .key_in = key,
                  .row_owned = forward ? d + dv + one : d + 2 * dv + 2 * one,
                  .key_owned = key,
                  .everywhere = inputs_of(task.pass) == Inputs::weighted ? 2 * square : 0};
  switch (task.pass) {
    case Pass::forward:
    case Pass::attention:
      words.row_out = dv + one;  // O and L of a key group
      return words;
    case Pass::backward:
      words.running = square;
      if (task.known == Known::nothing) {
        words.row_out = 3 * one;       // the maximum of s, the sums of e and of e q
        words.row_back = 2 * one;      // L and the mean of q
        words.row_kept = 2 * d * one;  // the sums of e q A2 and e A2, which become W
        words.row_owned = d + dv + 2 * one;
      } else {
        words.row_in += 2 * one;  // L and v
      }
      return words;
    case Pass::gradients:
      require(task.known == Known::O_and_L, "O and L of gradients on a grid");
      words.row_in += 2 * one;
      words.row_out = d;    // dQ
      words.key_out = key;  // dK and dV
      words.row_owned += d;
      words.key_owned += key;
      return words;
    case Pass::product:
    case Pass::logsumexp:
    case Pass::layer:
    case Pass::linear:
    case Pass::linear_gradient:
    case Pass::own:
      break;
  }
  throw ShapeMismatch("there is no grid for " + std::string(to_string(task.pass)) +
                      ": ask for forward, attention, backward or gradients");
}

Range keys_of_groups(Range groups, const GridTask& task) {
  const Index m = task.problem.shape.m, all = task.grid.groups;
  const auto first_key = [&](Index group) { return m / all * group + std::min(group, m % all); };
  return {first_key(groups.begin), first_key(groups.end)};
}

RankShare share_of_rank(const GridTask& task, Index rank) {
  check(task);
  const auto [rows, columns, groups] = task.grid;
  require(0 <= rank && rank < rows * columns, "a rank of the grid");
  const Index i = rank / columns, j = rank % columns;
  const Index n = task.problem.shape.n;
  RankShare share;
  share.units = share_of(units_of(task), i, rows);
  share.groups = share_of(groups, j, columns);
  share.rows = {std::min(share.units.begin * task.unit_rows, n),
                std::min(share.units.end * task.unit_rows, n)};
  share.keys = keys_of_groups(share.groups, task);
  share.own_rows = part_of(share.rows, share_of(share.rows.size(), j, columns));
  share.own_keys = part_of(share.keys, share_of(share.keys.size(), i, rows));
  return share;
}

RankWords rank_words(const GridTask& task, Index rank) {
  const RankShare share = share_of_rank(task, rank);
  const PassWords words = pass_words(task);
  const Index n_r = share.own_rows.size(), k_r = share.own_keys.size();
  const Index others_rows = share.rows.size() - n_r;
  const Index groups = share.groups.size(), others_groups = task.grid.groups - groups;
  const Index row_peers = task.grid.columns - 1;
  const Index works = share.works() ? 1 : 0;
  const Index others_keys = works * (share.keys.size() - k_r);
  const Index key_peers = working_rows(task) - works;
  const auto [hops_in, hops_out] = hops(task, share);

  RankWords of{
      .phases =
          {{{"rows in", Words(words.row_in) * others_rows, Words(words.row_in) * n_r * row_peers},
            {"keys in", Words(words.key_in) * others_keys, Words(words.key_in) * k_r * key_peers},
            {"rows out", Words(words.row_out) * n_r * others_groups,
             Words(words.row_out) * others_rows * groups},
            {"rows back", Words(words.row_back) * others_rows,
             Words(words.row_back) * n_r * row_peers},
            {"keys out", Words(words.key_out) * k_r * key_peers,
             Words(words.key_out) * others_keys},
            {"running sum", Words(words.running) * hops_in, Words(words.running) * hops_out}}},
      .home = {},
      .staged_home = {}};
  const Words owned =
      Words(words.row_owned) * n_r + Words(words.key_owned) * k_r + words.everywhere;
  const Words copies = Words(words.row_in + words.row_back) * others_rows;
  const Words parts =
      Words(words.running) * groups * share.units.size() +
      Words(words.row_kept) * groups * share.rows.size() +
      Words(words.row_out) * (Words(groups) * others_rows + Words(task.grid.groups) * n_r) +
      Words(words.key_out) * (Words(others_keys) + Words(k_r) * working_rows(task));
  const Words keys = Words(words.key_in) * others_keys;
  const Words stages = Words(words.key_in) * works * 2 * largest_group(task);
  of.home = owned + copies + parts + keys;
  of.staged_home = owned + copies + parts + std::min(keys, stages);
  return of;
}

Words RankWords::received() const {
  Words all;
  for (const PhaseLinks& phase : phases) {
    all += phase.received;
  }
  return all;
}

Words RankWords::sent() const {
  Words all;
  for (const PhaseLinks& phase : phases) {
    all += phase.sent;
  }
  return all;
}

GridWords grid_words(const GridTask& task) {
  check(task);
  GridWords words;
  std::array<Words, std::tuple_size_v<decltype(RankWords::phases)>> most;
  for (Index rank = 0; rank < task.grid.rows * task.grid.columns; ++rank) {
    const RankWords of = rank_words(task, rank);
    words.total += of.received();
    words.largest = std::max(words.largest, of.received() + of.sent());
    words.home = std::max(words.home, of.home);
    words.staged_home = std::max(words.staged_home, of.staged_home);
    for (std::size_t phase = 0; phase + 1 < most.size(); ++phase) {
      most[phase] = std::max(most[phase], of.phases[phase].received + of.phases[phase].sent);
    }
    most.back() += of.phases.back().received;
  }
  for (const Words phase : most) {
    words.path += phase;
  }
  return words;
}

}  // namespace redblue
