#include "kernels/plan.hpp"

#include <algorithm>
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

PhaseCost total(const std::vector<PhaseCost>& phases) {
  PhaseCost sum;
  for (const PhaseCost& phase : phases) {
    sum.reads += phase.reads;
    sum.writes += phase.writes;
    sum.flops += phase.flops;
    sum.peak = std::max(sum.peak, phase.peak);
  }
  return sum;
}

std::string to_string(const Plan& plan) {
  std::string line = plan.kernel + " n=" + std::to_string(plan.shape.n) +
                     " m=" + std::to_string(plan.shape.m) + " d=" + std::to_string(plan.shape.d) +
                     " M=" + std::to_string(plan.M) + ":";
  for (const auto& [name, size] : plan.blocks) {
    line += " " + name + "=" + std::to_string(size);
  }
  return line;
}

}  // namespace redblue
