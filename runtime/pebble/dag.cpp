#include "runtime/pebble/dag.hpp"

#include <algorithm>

namespace redblue {

Index Dag::edges() const {
  Index sum = 0;
  for (const Vertex& vertex : vertices) {
    sum += std::ssize(vertex.operands);
  }
  return sum;
}

std::vector<Index> Dag::uses() const {
  std::vector<Index> uses(vertices.size());
  for (const Vertex& vertex : vertices) {
    for (const Index operand : vertex.operands) {
      ++uses[static_cast<std::size_t>(operand)];
    }
  }
  return uses;
}

std::vector<bool> Dag::results() const {
  const std::vector<Index> of = uses();
  std::vector<bool> results(vertices.size());
  for (Index v = 0; v < size(); ++v) {
    results[slot(v)] = of[slot(v)] == 0 || (*this)[v].result;
  }
  return results;
}

std::vector<std::vector<Index>> Dag::users() const {
  std::vector<std::vector<Index>> users(vertices.size());
  for (Index v = 0; v < size(); ++v) {
    for (const Index operand : (*this)[v].operands) {
      users[static_cast<std::size_t>(operand)].push_back(v);
    }
  }
  return users;
}

std::vector<Index> Dag::cycle() const {
  // Find the vertices of cycles and all that depend on them. Each has such an operand.
  const std::vector<std::vector<Index>> all_users = users();
  std::vector<Index> left(vertices.size());
  std::vector<Index> ready;
  for (Index v = 0; v < size(); ++v) {
    left[static_cast<std::size_t>(v)] = std::ssize((*this)[v].operands);
    if (input(v)) {
      ready.push_back(v);
    }
  }
  while (!ready.empty()) {
    const Index v = ready.back();
    ready.pop_back();
    for (const Index user : all_users[static_cast<std::size_t>(v)]) {
      if (--left[static_cast<std::size_t>(user)] == 0) {
        ready.push_back(user);
      }
    }
  }
  const auto stuck = std::ranges::find_if(left, [](Index count) { return count > 0; });
  if (stuck == left.end()) {
    return {};
  }
  std::vector<Index> path;
  std::vector<Index> place(vertices.size(), -1);  // on the path
  Index v = stuck - left.begin();
  while (place[static_cast<std::size_t>(v)] < 0) {
    place[static_cast<std::size_t>(v)] = std::ssize(path);
    path.push_back(v);
    v = *std::ranges::find_if((*this)[v].operands, [&](Index operand) {
      return left[static_cast<std::size_t>(operand)] > 0;
    });
  }
  path.erase(path.begin(), path.begin() + place[static_cast<std::size_t>(v)]);
  std::ranges::reverse(path);  // from an operand to its user
  return path;
}

}  // namespace redblue
