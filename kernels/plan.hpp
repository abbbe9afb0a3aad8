#pragma once
// Everything about a run that is decided before it starts, as values: the blocks, and the
// closed form of what each phase will move and hold.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/problem.hpp"
#include "memsim/range.hpp"
#include "memsim/words.hpp"

namespace redblue {

// Named block sizes in the order in which the kernel introduces them.
class Blocks {
 public:
  Blocks() = default;
  Blocks(std::initializer_list<std::pair<std::string, Index>> sizes) : sizes_(sizes) {}

  [[nodiscard]] bool contains(std::string_view name) const;
  // Throws (both): std::out_of_range naming the block that there is not.
  [[nodiscard]] Index operator[](std::string_view name) const;
  void set(std::string_view name, Index size);
  // There need be none of that name.
  void drop(std::string_view name) {
    std::erase_if(sizes_, [&](const auto& block) { return block.first == name; });
  }
  // A further block. Requires: of a new name.
  void add(std::string name, Index size) { sizes_.emplace_back(std::move(name), size); }

  [[nodiscard]] auto begin() const { return sizes_.begin(); }
  [[nodiscard]] auto end() const { return sizes_.end(); }
  friend bool operator==(const Blocks&, const Blocks&) = default;

 private:
  std::vector<std::pair<std::string, Index>> sizes_;
};

// In the plan of a kernel that streams keys: so many of their blocks are in fast memory at a time,
// so that a store may bring the next while one is computed with. A plan without it has one.
inline constexpr std::string_view kPrefetch = "prefetch";
Index prefetch_of(const Blocks& blocks);

// In the plan of a kernel that adds A1_I^T W_I to g: so many columns of A1_I stay until then; of
// gradients/score-rows: so many keys stay. A plan without it has none.
inline constexpr std::string_view kKept = "kept";

// In the plan of a kernel that takes keys in groups: so many. A plan without it has one.
inline constexpr std::string_view kKeyGroups = "groups";
Index key_groups_of(const Blocks& blocks);
// The keys of one of so many groups, of which the first ones may have one more than the others.
Range keys_of_group(Index keys, Index groups, Index group);
// In the plan of a rank that has some groups of a larger plan, perhaps one.
inline constexpr std::string_view kSomeGroups = "some groups";
// The same of row blocks, for kernels in which keys stay while queries pass. The row blocks of one
// of so many groups are consecutive, and the first groups may have one more.
inline constexpr std::string_view kQueryGroups = "dKV.groups";
inline constexpr std::string_view kSomeQueryGroups = "some dKV.groups";

// So many rows stay in a level while so many keys pass at a time, or columns of weights. Or, in the
// innermost level, each step of the arithmetic borrows what it takes, and gives it back: rows and
// keys come for each of them.
struct LevelBlocks {
  Index rows, keys, weights;
  bool apart = false;
};
// In a plan of inner levels, "L1.apart": 1 where steps are apart. A plan without it has 0.
inline constexpr std::string_view kApart = "apart";

// Of each inner level, from the innermost out.
using Levels = std::vector<LevelBlocks>;

// The blocks of inner levels in a plan, from the innermost out: L1.Br, L1.Bc, L1.Bw, L2.Br, ... Of
// a plan without weights there is no Bw. With a prefix as "dQ.": L1.dQ.Br, L1.dQ.Bc, ...
Levels level_blocks(const Blocks& blocks, std::string_view prefix = "");
std::string level_block(std::size_t level, std::string_view block);

// Groups in which queries, or keys, ask what they meet.
struct Grouping {
  bool of_keys = false;
  Index size = 1;
  bool stays = false;  // one group, of the queries that stay
  Words words = {};    // that all of them read

  [[nodiscard]] bool same_groups(const Grouping& other) const {
    return of_keys == other.of_keys && size == other.size && stays == other.stays;
  }
};

// The closed form of one phase: words read and written, the most words live while it lasts,
// and the flops of its matrix products.
struct PhaseCost {
  std::string path;
  Words reads;
  Words writes;
  Words peak;
  Words flops;
  // Those of `reads` that say which keys meet which queries, where the mask is data, and the groups
  // for which a pattern is kept: kernels/units.hpp adds both. Those of `reads` and `writes` that
  // say where the entries of sparse matrices are.
  Words index_reads = {};
  Words index_writes = {};
  std::vector<Grouping> groupings = {};
};

// The whole: sums of words and flops, the largest peak.
PhaseCost total(const std::vector<PhaseCost>& phases);

// What an inner level moves and holds.
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
  std::vector<LevelPlan> inner = {};  // from the innermost level out
};

// The words of its inner levels, from the innermost out.
std::vector<Index> inner_levels(const Plan& plan);
// Of a level, by its number from the innermost out; the machine's is the last.
PhaseCost total_of_level(const Plan& plan, std::size_t level);
// The words of all levels, each at its cost. Requires: the memory that the plan is of.
double weighted_words(const Plan& plan, const Memory& memory);

// The kernel's name, and -shared where A3 is A2.
std::string spelled(const Plan& plan);
std::string spelled(std::string_view kernel, Sharing sharing);

// "backward/large n=2000 m=2000 d=32 M=8192: phase1.Br=118 ..." on one line. Several such problems
// have a head of keys each: "5 heads of backward/large n=2000 ...", or, where heads of queries are
// stacked, "attention/rows n=2000 m=2000 d=32 heads=20 kv_heads=5 M=8192: ...".
std::string to_string(const Plan& plan, Index kv_heads = 1);

}  // namespace redblue
