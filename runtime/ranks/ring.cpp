#include "runtime/ranks/ring.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "kernels/masked.hpp"

namespace redblue {
namespace {

// Returns the block size of streaming rows.
Index passing_block(const Blocks& blocks, bool keys_stay) {
  if (keys_stay) {
    return blocks["dKV.Br"];
  }
  std::string name(row_block_of(blocks));
  name.replace(name.size() - 2, 2, "Bc");
  return blocks[name];
}

// Divides each rank's rows into pieces, in the order of rows.
std::vector<RingPass::Piece> pieces_of(const GridPlan& of, bool keys_stay, Index block) {
  std::vector<RingPass::Piece> pieces;
  for (Index row = 0; row < of.grid().rows; ++row) {
    const Ranges own = keys_stay ? of.queries(row) : Ranges{of.own_keys(row, 0)};
    const Index most = std::max(block, ceil_div(size_of(own), kPiecesOfARank));
    for (const Range range : own) {
      for (const Range piece : blocks(range.size(), most)) {
        pieces.push_back({part_of(range, piece), of.rank_of(row, 0)});
      }
    }
  }
  std::ranges::sort(pieces, {}, [](const RingPass::Piece& piece) { return piece.rows.begin; });
  return pieces;
}

// Returns the maximum number of pieces that a block of `block` rows can touch, wherever it begins.
Index most_touched(const std::vector<RingPass::Piece>& pieces, Index block) {
  std::size_t most = 0;
  for (std::size_t first = 0, last = 0; first < pieces.size(); ++first) {
    while (last < pieces.size() && pieces[last].rows.begin < pieces[first].rows.end - 1 + block) {
      ++last;
    }
    most = std::max(most, last - first);
  }
  return static_cast<Index>(most);
}

// Returns the maximum number of units that a rank has in a stage.
Index most_units(const GridPlan& of, const SplitStage& stage, bool keys_stay) {
  const Plan& plan = of.plan();
  if (stage.units(plan.problem, plan.blocks) == 0) {
    return 0;
  }
  Index most = 0;
  for (Index row = 0; row < of.grid().rows; ++row) {
    most = std::max(most, keys_stay ? ceil_div(of.own_keys(row, 0).size(), plan.blocks["dKV.Bc"])
                                    : std::ssize(of.row_blocks(row)));
  }
  return most;
}

void add(LinkCount& sum, LinkCount of_lap, Index laps) {
  sum += {of_lap.words * laps, of_lap.messages * laps};
}

}  // namespace

std::optional<RingPass> ring_pass(const GridPlan& of, const SplitStage& stage) {
  if (!of.grid().ring || stage.of != StageRows::place) {
    return std::nullopt;
  }
  const bool keys_stay = of.keys_stay(stage);
  RingPass pass{.matrices = {}, .pieces = {}, .laps = most_units(of, stage, keys_stay)};
  if (pass.laps == 0) {
    return std::nullopt;
  }
  const Plan& plan = of.plan();
  std::vector<Signature> all = of.kernel().given(plan.problem);
  for (const Split::Copies& left : of.split().left_of(plan.problem, plan.blocks)) {
    all.push_back(left.matrix);
  }
  std::ranges::copy_if(all, std::back_inserter(pass.matrices), [&](const Signature& matrix) {
    return keys_stay ? of_queries(matrix) && is_among(stage.brings, matrix.name) : of_keys(matrix);
  });
  const Index block = passing_block(plan.blocks, keys_stay);
  pass.pieces = pieces_of(of, keys_stay, block);
  pass.slots = most_touched(pass.pieces, block);
  for (const RingPass::Piece& piece : pass.pieces) {
    pass.slot_rows = std::max(pass.slot_rows, piece.rows.size());
  }
  return pass;
}

std::vector<RingPass> ring_passes(const GridPlan& of) {
  std::vector<RingPass> all;
  for (const SplitStage& stage : of.split().stages) {
    if (auto pass = ring_pass(of, stage)) {
      all.push_back(std::move(*pass));
    }
  }
  return all;
}

Links ring_links(const GridPlan& of, Index rank) {
  Links links;
  const Index before = of.before(rank), after = of.after(rank);
  if (before == rank) {
    return links;
  }
  for (const RingPass& pass : ring_passes(of)) {
    for (const Signature& matrix : pass.matrices) {
      LinkCount in, out;
      for (const RingPass::Piece& piece : pass.pieces) {
        const LinkCount its = count_of(piece.rows.size() * matrix.cols_of(of.plan().problem.shape));
        add(in, its, piece.rank != rank ? pass.laps : 0);
        add(out, its, piece.rank != after ? pass.laps : 0);
      }
      for (const auto& [from, to, count] : {std::tuple(before, rank, in), {rank, after, out}}) {
        if (count.messages > 0) {
          links[{std::string(matrix.name), from, to}] += count;
        }
      }
    }
  }
  return links;
}

Words ring_path(const GridPlan& of) {
  const Index ranks = of.grid().rows;
  // The time when each rank has received all earlier pieces, in words.
  std::vector<Index> free(static_cast<std::size_t>(ranks), 0);
  Words all;
  for (const RingPass& pass : ring_passes(of)) {
    std::ranges::fill(free, 0);
    Index cols = 0;
    for (const Signature& matrix : pass.matrices) {
      cols += matrix.cols_of(of.plan().problem.shape);
    }
    for (Index lap = 0; lap < pass.laps; ++lap) {
      for (const RingPass::Piece& piece : pass.pieces) {
        const Index words = piece.rows.size() * cols;
        Index at = piece.rank;
        Index there = free[static_cast<std::size_t>(of.row_of(at))];
        for (Index hop = 1; hop < ranks; ++hop) {
          at = of.after(at);
          Index& last = free[static_cast<std::size_t>(of.row_of(at))];
          last = there = std::max(there, last) + words;
        }
      }
    }
    all += *std::ranges::max_element(free);
  }
  return all;
}

std::string passing_name(std::string_view matrix) {
  return std::string(matrix) + " that passes";
}

}  // namespace redblue
