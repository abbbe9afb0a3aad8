#include "memsim/phase.hpp"

#include <algorithm>

#include "memsim/machine.hpp"

namespace redblue {
namespace {

void collect(const PhaseNode& node, std::vector<PhaseTotal>& into) {
  const bool own = node.io != IoCount{} || node.operations != Operations{};
  if (own || (node.children.empty() && node.parent != nullptr)) {
    into.push_back({node.path(), node.io, node.operations, node.peak});
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

std::vector<PhaseTotal> leaves(const PhaseNode& root) {
  std::vector<PhaseTotal> found;
  collect(root, found);
  return found;
}

PhaseTotal total(const PhaseNode& root) {
  PhaseTotal sum{"", root.io, root.operations, root.peak};
  for (const auto& child : root.children) {
    const PhaseTotal part = total(*child);
    sum.io += part.io;
    sum.operations += part.operations;
    sum.peak = std::max(sum.peak, part.peak);
  }
  return sum;
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
