#include "memsim/phase.hpp"

#include <algorithm>

#include "memsim/machine.hpp"

namespace redblue {
namespace {

void collect(const PhaseNode& node, std::vector<PhaseCounts>& into) {
  const bool own = node.io != IoCount{} || node.operations != Operations{};
  if (own || (node.children.empty() && node.parent != nullptr)) {
    into.push_back(
        {node.path(), node.io, node.operations, node.peak, node.kinds[Holds::indices].io});
  }
  for (const auto& child : node.children) {
    collect(*child, into);
  }
}

}  // namespace

std::string PhaseNode::path() const {
  if (parent == nullptr) {
    return {};
  }
  return parent->parent == nullptr ? name : parent->path() + "/" + name;
}

PhaseCounts& PhaseCounts::operator+=(const PhaseCounts& other) {
  io += other.io;
  operations += other.operations;
  peak = std::max(peak, other.peak);
  indices += other.indices;
  return *this;
}

std::vector<PhaseCounts> leaves(const PhaseNode& root) {
  std::vector<PhaseCounts> found;
  collect(root, found);
  return found;
}

PhaseCounts total(const PhaseNode& root) {
  PhaseCounts sum{"", root.io, root.operations, root.peak, root.kinds[Holds::indices].io};
  for (const auto& child : root.children) {
    sum += total(*child);
  }
  return sum;
}

ByKind<KindCounts> total_by_kind(const PhaseNode& root) {
  ByKind<KindCounts> sum = root.kinds;
  for (const auto& child : root.children) {
    const ByKind<KindCounts> of_child = total_by_kind(*child);
    for (const Holds holds : kHolds) {
      sum[holds].io += of_child[holds].io;
      sum[holds].peak = std::max(sum[holds].peak, of_child[holds].peak);
    }
  }
  return sum;
}

std::string_view to_string(Holds holds) {
  switch (holds) {
    case Holds::operands:
      return "operands";
    case Holds::scores:
      return "scores";
    case Holds::sums:
      return "sums";
    case Holds::indices:
      return "indices";
  }
  return "?";
}

Phase::Phase(Machine& machine, std::string_view name) : machine_(&machine) {
  machine.enter(*this, name);
}

Phase::~Phase() {
  if (machine_ != nullptr) {
    machine_->leave(*this);
  }
}

}  // namespace redblue
