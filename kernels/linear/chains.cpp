#include "kernels/linear/chains.hpp"

#include <algorithm>
#include <initializer_list>

namespace redblue {

const std::vector<Chain>& chains(LinearResult of, bool causal) {
  static const std::vector<Chain> outputs = {
      {{"S", "A2^T", "A3"}, {"T", "S", "Y"}, {"P", "X", "T"}, {"O", "A1", "P"}},
      {{"H", "A3", "Y"}, {"T", "A2^T", "H"}, {"P", "X", "T"}, {"O", "A1", "P"}},
      {{"S", "A2^T", "A3"}, {"T", "S", "Y"}, {"Q", "A1", "X"}, {"O", "Q", "T"}},
      {{"H", "A3", "Y"}, {"T", "A2^T", "H"}, {"Q", "A1", "X"}, {"O", "Q", "T"}},
      {{"S", "A2^T", "A3"}, {"Q", "A1", "X"}, {"R", "Q", "S"}, {"O", "R", "Y"}}};
  static const std::vector<Chain> gradients = {
      {{"S", "A2^T", "A3"}, {"T", "S", "Y"}, {"U", "A1^T", "dO"}, {"g", "U", "T^T"}},
      {{"H", "A3", "Y"}, {"T", "A2^T", "H"}, {"U", "A1^T", "dO"}, {"g", "U", "T^T"}},
      {{"S", "A2^T", "A3"}, {"T", "S", "Y"}, {"W", "dO", "T^T"}, {"g", "A1^T", "W"}},
      {{"H", "A3", "Y"}, {"T", "A2^T", "H"}, {"W", "dO", "T^T"}, {"g", "A1^T", "W"}},
      {{"S", "A2^T", "A3"}, {"G", "dO", "Y^T"}, {"W", "G", "S^T"}, {"g", "A1^T", "W"}}};
  static const std::vector<Chain> causal_outputs = {
      {{"Q", "A1", "X"}, {"R", "Q", "A2", "A3"}, {"O", "R", "Y"}}};
  static const std::vector<Chain> causal_gradients = {
      {{"G", "dO", "Y^T"}, {"W", "G", "A3", "A2"}, {"g", "A1^T", "W"}}};
  return of == LinearResult::output ? (causal ? causal_outputs : outputs)
                                    : (causal ? causal_gradients : gradients);
}

const Chain& chain_of(const Problem& problem, const Blocks& blocks, LinearResult of) {
  const std::vector<Chain>& all = chains(of, !problem.mask.full());
  const auto found = std::ranges::find_if(all, [&](const Chain& chain) {
    return std::ranges::all_of(chain, [&](const Product& product) {
      return blocks.contains(std::string(product.result) + ".rows");
    });
  });
  require(found != all.end(), "blocks of all products of a chain");
  return *found;
}

bool is_transposed(std::string_view name) {
  return name.ends_with("^T");
}
std::string_view stored_name(std::string_view name) {
  return is_transposed(name) ? name.substr(0, name.size() - 2) : name;
}

Index Shape::*rows_of(std::string_view name) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, stored_name(name)) != names.end();
  };
  return is_one_of({"A1", "dO", "Q", "R", "G", "W", "O"}) ? &Shape::n
         : is_one_of({"A2", "A3", "H"})                   ? &Shape::m
                                                          : &Shape::d;
}
Index rows_of(std::string_view name, const Shape& shape) {
  return shape.*rows_of(name);
}

ProductShape extents(const Product& product, Index rows, Index d) {
  return is_transposed(product.left) ? ProductShape{.rows = d, .cols = d, .depth = rows}
                                     : ProductShape{.rows = rows, .cols = d, .depth = d};
}

}  // namespace redblue
