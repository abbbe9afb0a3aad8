#include "kernels/plan.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace redblue {

namespace {

auto find(auto& sizes, std::string_view name) {
  const auto found = std::ranges::find_if(sizes, [&](auto& size) { return size.first == name; });
  if (found == sizes.end()) {
    throw std::out_of_range("no block size is called " + std::string(name));
  }
  return found;
}

}  // namespace

bool Blocks::contains(std::string_view name) const {
  return std::ranges::any_of(sizes_, [&](const auto& size) { return size.first == name; });
}

Index Blocks::operator[](std::string_view name) const {
  return find(sizes_, name)->second;
}

void Blocks::set(std::string_view name, Index size) {
  find(sizes_, name)->second = size;
}

Index prefetch_of(const Blocks& blocks) {
  return blocks.contains(kPrefetch) ? blocks[kPrefetch] : 1;
}

Index key_groups_of(const Blocks& blocks) {
  return blocks.contains(kKeyGroups) ? blocks[kKeyGroups] : 1;
}

Range keys_of_group(Index keys, Index groups, Index group) {
  const auto first = [&](Index of) { return keys / groups * of + std::min(of, keys % groups); };
  return {first(group), first(group + 1)};
}

std::string level_block(std::size_t level, std::string_view block) {
  return "L" + std::to_string(level + 1) + "." + std::string(block);
}

Levels level_blocks(const Blocks& blocks, std::string_view prefix) {
  const auto name_of = [prefix](std::size_t level, std::string_view block) {
    return level_block(level, std::string(prefix) + std::string(block));
  };
  Levels levels;
  for (std::size_t level = 0; blocks.contains(name_of(level, "Br")); ++level) {
    const auto of = [&](std::string_view block) {
      const std::string name = name_of(level, block);
      return blocks.contains(name) ? blocks[name] : 1;
    };
    const std::string apart = name_of(level, kApart);
    levels.push_back({.rows = of("Br"),
                      .keys = of("Bc"),
                      .weights = of("Bw"),
                      .apart = level == 0 && blocks.contains(apart) && blocks[apart] > 0});
  }
  return levels;
}

PhaseCost total(const std::vector<PhaseCost>& phases) {
  PhaseCost sum;
  for (const PhaseCost& phase : phases) {
    sum.reads += phase.reads;
    sum.writes += phase.writes;
    sum.flops += phase.flops;
    sum.index_reads += phase.index_reads;
    sum.index_writes += phase.index_writes;
    sum.peak = std::max(sum.peak, phase.peak);
  }
  return sum;
}

std::vector<Index> inner_levels(const Plan& plan) {
  std::vector<Index> levels;
  for (const LevelPlan& level : plan.inner) {
    levels.push_back(level.M);
  }
  return levels;
}

PhaseCost total_of_level(const Plan& plan, std::size_t level) {
  return total(level < plan.inner.size() ? plan.inner[level].phases : plan.phases);
}

double weighted_words(const Plan& plan, const Memory& memory) {
  std::vector<Words> moved;
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    const PhaseCost all = total_of_level(plan, level);
    moved.push_back(all.reads + all.writes);
  }
  return memory.weighted(moved);
}

std::string spelled(std::string_view kernel, Sharing sharing) {
  return std::string(kernel) + (sharing == Sharing::kv ? "-shared" : "");
}

std::string spelled(const Plan& plan) {
  return spelled(plan.kernel, plan.problem.sharing);
}

std::string to_string(const Plan& plan, Index kv_heads) {
  const Problem& problem = plan.problem;
  std::string line = spelled(plan) + " n=" + std::to_string(problem.queries()) +
                     " m=" + std::to_string(problem.shape.m) +
                     " d=" + std::to_string(problem.shape.d);
  if (problem.shape.dv != problem.shape.d) {
    line += " dv=" + std::to_string(problem.shape.dv);
  }
  if (problem.stacked > 1) {
    line += " heads=" + std::to_string(problem.stacked * kv_heads) +
            " kv_heads=" + std::to_string(kv_heads);
  } else if (kv_heads > 1) {
    line = std::to_string(kv_heads) + " heads of " + line;
  }
  line += " M=";
  for (const LevelPlan& level : plan.inner) {
    line += std::to_string(level.M) + ",";
  }
  line += std::to_string(plan.M);
  if (plan.problem.softmax_scale) {
    char c[32];
    const auto end = std::to_chars(c, c + sizeof c, *plan.problem.softmax_scale).ptr;
    line += " c=" + std::string(c, end);
  }
  if (!plan.problem.normalised()) {
    line += " activation=" + std::string(to_string(plan.problem.activation));
  }
  if (!plan.problem.wanted.all()) {
    line += " wanted=" + plan.problem.wanted.text();
  }
  if (const Mask& mask = plan.problem.mask; !mask.spec().empty()) {
    line += " mask=" + mask.spec();
  } else if (!mask.full()) {
    line += " mask=" + std::to_string(mask.fingerprint());
  }
  line += ":";
  for (const auto& [name, size] : plan.blocks) {
    line += " " + name + "=" + std::to_string(size);
  }
  return line;
}

}  // namespace redblue
