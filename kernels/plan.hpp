#pragma once
// Declares plans: everything that is decided before a run starts. A plan holds the block sizes and
// the exact words that each phase will move and hold.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/problem.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// Named block sizes, in the order in which the kernel introduces them.
class Blocks {
 public:
  Blocks() = default;
  Blocks(std::initializer_list<std::pair<std::string, Index>> sizes) : sizes_(sizes) {}

  [[nodiscard]] bool contains(std::string_view name) const;
  // Throw std::out_of_range, with the name, if no block has it.
  [[nodiscard]] Index operator[](std::string_view name) const;
  void set(std::string_view name, Index size);
  // Removes the block of this name, if it exists.
  void drop(std::string_view name) {
    std::erase_if(sizes_, [&](const auto& block) { return block.first == name; });
  }
  // Adds a block. Requires: a new name.
  void add(std::string name, Index size) { sizes_.emplace_back(std::move(name), size); }

  [[nodiscard]] auto begin() const { return sizes_.begin(); }
  [[nodiscard]] auto end() const { return sizes_.end(); }
  friend bool operator==(const Blocks&, const Blocks&) = default;

 private:
  std::vector<std::pair<std::string, Index>> sizes_;
};

// Block of kernels that stream keys: the number of key blocks in fast memory at once. A store can
// then load the next blocks during arithmetic. Default: 1.
inline constexpr std::string_view kPrefetch = "prefetch";
Index prefetch_of(const Blocks& blocks);

// Number of columns of A1_I that stay resident until A1_I^T W_I is added to g. In
// gradients/score-rows: number of resident keys. Default: 0.
inline constexpr std::string_view kKept = "kept";

// Number of groups into which a kernel splits the keys. Default: 1.
inline constexpr std::string_view kKeyGroups = "groups";
Index key_groups_of(const Blocks& blocks);
// Returns the keys of one group. The first groups may have one key more than the others.
Range keys_of_group(Index keys, Index groups, Index group);
// Present in the plan of a rank that has only some groups of a larger plan.
inline constexpr std::string_view kSomeGroups = "some groups";
// The same two blocks for groups of row blocks, in kernels with resident keys and streaming
// queries. The row blocks of a group are consecutive, and the first groups may have one more.
inline constexpr std::string_view kQueryGroups = "dKV.groups";
inline constexpr std::string_view kSomeQueryGroups = "some dKV.groups";

// Blocks of an inner level: `rows` stay while `keys` keys, or `weights` columns of weights, pass.
// If `apart`, which only the innermost level has, each step of the arithmetic borrows its rows and
// keys and returns them after the step.
struct LevelBlocks {
  Index rows, keys, weights;
  bool apart = false;
};
// Name of the block in plans with inner levels, as in "L1.apart": 1 if steps are apart. Default: 0.
inline constexpr std::string_view kApart = "apart";

// One element for each inner level, innermost first.
using Levels = std::vector<LevelBlocks>;

// Returns the blocks of the inner levels in a plan, innermost first: L1.Br, L1.Bc, L1.Bw, L2.Br,
// ... Bw is missing in a plan without weights. With a prefix such as "dQ.": L1.dQ.Br, L1.dQ.Bc, ...
Levels level_blocks(const Blocks& blocks, std::string_view prefix = "");
std::string level_block(std::size_t level, std::string_view block);

// Groups of queries, or of keys, that each read which keys or queries they meet.
struct Grouping {
  bool of_keys = false;
  Index size = 1;
  bool stays = false;  // true for the one group of resident queries
  Words words = {};    // words that all groups together read

  [[nodiscard]] bool same_groups(const Grouping& other) const {
    return of_keys == other.of_keys && size == other.size && stays == other.stays;
  }
};

// The exact cost of one phase: words read and written, the most words live at once, and the flops
// of its matrix products.
struct PhaseCost {
  std::string path;
  Words reads;
  Words writes;
  Words peak;
  Words flops;
  // `index_reads` and `index_writes` are included in `reads` and `writes`. They are the indices of
  // a mask that is data, and of sparse matrices. `groupings` lists the groups for which the indices
  // of a pattern are stored. For masks, kernels/units.hpp adds both.
  Words index_reads = {};
  Words index_writes = {};
  std::vector<Grouping> groupings = {};
};

// Returns the sums of words and flops, and the largest peak.
PhaseCost total(const std::vector<PhaseCost>& phases);

// The words that an inner level moves and holds.
struct LevelPlan {
  Index M = 0;
  std::vector<PhaseCost> phases = {};
};

struct Plan {
  std::string kernel;
  Pass pass = Pass::product;
  Problem problem;
  Index M = 0;
  Blocks blocks;
  std::vector<PhaseCost> phases;
  std::vector<LevelPlan> inner = {};  // innermost first
};

// Returns the words of the plan's inner levels, innermost first.
std::vector<Index> inner_levels(const Plan& plan);
// Returns the total of one level. Levels are numbered innermost first; the last is the machine's
// own.
PhaseCost total_of_level(const Plan& plan, std::size_t level);
// Returns the words of all levels, weighted by cost. Requires: the memory of the plan.
double weighted_words(const Plan& plan, const Memory& memory);

// Returns the kernel's name, with -shared if values are keys.
std::string spelled(const Plan& plan);
std::string spelled(std::string_view kernel, Sharing sharing);

// Returns one line, such as "backward/large n=2000 m=2000 d=32 M=8192: phase1.Br=118 ...". With one
// key head for each of several problems: "5 heads of backward/large n=2000 ...". With stacked query
// heads: "attention/rows n=2000 m=2000 d=32 heads=20 kv_heads=5 M=8192: ...".
std::string to_string(const Plan& plan, Index kv_heads = 1);

}  // namespace redblue
