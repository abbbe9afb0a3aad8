#pragma once
// A computation as a graph: vertices are words, and each is computed of its operands. Vertices
// without operands are inputs. Those that are no operand are results, and so are marked ones.

#include <cstddef>
#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Where a list by vertex has v.
constexpr std::size_t slot(Index v) {
  return static_cast<std::size_t>(v);
}

struct Vertex {
  std::string name;
  std::vector<Index> operands;  // each once
  // A term of a sum, which may be added where it is made, without a word (Game::fma).
  bool term = false;
  // The sum of its operands, which may be added in any order (Sums::any).
  bool sum = false;
  // A result, even where it is an operand, too. Files have no such mark.
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
  // Of how many vertices each is an operand.
  [[nodiscard]] std::vector<Index> uses() const;
  [[nodiscard]] std::vector<bool> results() const;
  // The vertices that each is an operand of, in their order.
  [[nodiscard]] std::vector<std::vector<Index>> users() const;
  // Those of a cycle, one after the other, where there is one.
  [[nodiscard]] std::vector<Index> cycle() const;
};

}  // namespace redblue
