#pragma once
// The orders in which linear attention multiplies its matrices, two by two.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/linear/linear.hpp"
#include "kernels/parts/product.hpp"

namespace redblue {

// result = left right. With `values`: row i of the result is left_i S_i, for the running sum S of
// right^T values.
struct Product {
  std::string_view result, left, right;
  std::string_view values = {};
};
using Chain = std::vector<Product>;

// Returns all chains, for a problem in which all pairs are live or for the causal mask.
const std::vector<Chain>& chains(LinearResult of, bool causal);
// Returns the chain with blocks for all its products.
const Chain& chain_of(const Problem& problem, const Blocks& blocks, LinearResult of);

bool is_transposed(std::string_view name);
std::string_view stored_name(std::string_view name);
// Returns the extent of the matrix's rows: n for queries, m for keys, d for a square matrix.
Index Shape::*rows_of(std::string_view name);
Index rows_of(std::string_view name, const Shape& shape);
// Returns the extents of a product with a tall matrix of `rows` rows.
ProductShape extents(const Product& product, Index rows, Index d);

}  // namespace redblue
