#include "kernels/sparse/regrouped.hpp"

#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

RowGroups::RowGroups(const BlockPattern& of, Range its_rows)
    : rows(its_rows), entries(entries_of(of, its_rows)) {
  const ByColumns columns(of, rows);
  Index begin = entries.begin;
  for (Index k = 0; k < of.cols; ++k) {
    if (columns.has(k)) {
      groups.push_back({k, {begin, begin + std::ssize(columns[k])}});
      begin = groups.back().entries.end;
      for (const ByColumns::Entry& entry : columns[k]) {
        row_of.push_back(entry.row - rows.begin);
      }
    }
  }
}

void regroup(Machine& machine, const SlowCsr& from, Index block, SlowMatrix& to) {
  const Phase phase(machine, "prepare");
  for (const Range I : blocks(from.pattern.rows, block)) {
    const Tile next = machine.read_indices(I.size() + 1, 3 * I.size());
    const ByColumns columns(from.pattern, I);
    Index at = entries_of(from.pattern, I).begin;
    for (Index k = 0; k < from.pattern.cols; ++k) {
      const Index size = std::ssize(columns[k]);
      if (size == 0) {
        continue;
      }
      {
        const Tile header_and_rows = machine.initialize("index", 1, 1, Holds::indices);
        machine.write_indices(header_and_rows, 2 + size);
      }
      machine.read_indices(size).reset();  // the words go into `next`
      for (const ByColumns::Entry& entry : columns[k]) {
        const Tile value = machine.read(from.values.row_block({entry.entry, entry.entry + 1}));
        machine.write(value, to.row_block({at, at + 1}));
        ++at;
      }
    }
  }
}

BlockPattern pairs_of(const Sparsity& of, Range queries) {
  BlockPattern found{queries.size(), of.A2().rows, 1, 1, {0}, {}};
  for (Index query = queries.begin; query < queries.end; ++query) {
    each_key(of.keys_with(of.S().row(query)), [&](Index key) { found.columns.push_back(key); });
    found.offsets.push_back(found.stored());
  }
  return found;
}

std::optional<SlowMatrix> stored_scores(Workspace& workspace, std::string name,
                                        const Problem& problem) {
  KeptWords live(problem.shape.m);
  std::vector<Range> keys;
  for (Index query = 0; query < problem.shape.n; ++query) {
    keys.clear();
    each_key(problem.sparsity.keys_with(problem.sparsity.S().row(query)), [&](Index key) {
      if (keys.empty() || keys.back().end != key) {
        keys.push_back({key, key});
      }
      ++keys.back().end;
    });
    live.add_row(keys);
  }
  if (live.words() == 0) {
    return std::nullopt;
  }
  SlowMatrix words = workspace.matrix(name, 1, live.words());
  return partial(std::move(name), std::move(words), std::move(live)).holding(Holds::scores);
}

}  // namespace redblue
