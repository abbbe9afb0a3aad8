#pragma once
// A computation as a graph. Vertices are words, and each is computed from its operands. Vertices
// without operands are inputs. A vertex is a result if it is no operand or is marked as a result.

#include <cstddef>
#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Returns the place of v in a list with an element for each vertex.
constexpr std::size_t slot(Index v) {
  return static_cast<std::size_t>(v);
}

struct Vertex {
  std::string name;
  std::vector<Index> operands;  // each operand once
  // True for a term of a sum. It may be added where it is made, without a word (Game::fma).
  bool term = false;
  // True for the sum of the operands, which may be added in any order (Sums::any).
  bool sum = false;
  // True for a result, even if it is an operand, too. Files do not store this mark.
  bool result = false;
};

struct Dag {
  std::vector<Vertex> vertices;

  [[nodiscard]] Index size() const { return std::ssize(vertices); }
  [[nodiscard]] const Vertex& operator[](Index v) const {
    return vertices[static_cast<std::size_t>(v)];
  }
  Index add(std::string name, std::vector<Index> operands = {}) {
    vertices.push_back({std::move(name), std::move(operands)});
    return size() - 1;
  }
  [[nodiscard]] bool input(Index v) const { return (*this)[v].operands.empty(); }
  [[nodiscard]] Index edges() const;
  // Returns how many vertices use each vertex as an operand.
  [[nodiscard]] std::vector<Index> uses() const;
  [[nodiscard]] std::vector<bool> results() const;
  // Returns the vertices that use each vertex as an operand, in their order.
  [[nodiscard]] std::vector<std::vector<Index>> users() const;
  // Returns the vertices of a cycle, one after the other. Empty if there is no cycle.
  [[nodiscard]] std::vector<Index> cycle() const;
};

}  // namespace redblue
