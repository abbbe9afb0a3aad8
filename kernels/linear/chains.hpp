#pragma once
// In which order linear attention multiplies its matrices two by two.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/linear/linear.hpp"
#include "kernels/parts/product.hpp"

namespace redblue {

// result = left right; with values, left S_i for the running sum S of right^T values.
struct Product {
  std::string_view result, left, right;
  std::string_view values = {};
};
using Chain = std::vector<Product>;

// All that there are, where all pairs live or those of causal.
const std::vector<Chain>& chains(LinearResult of, bool causal);
// The one whose products all have blocks.
const Chain& chain_of(const Problem& problem, const Blocks& blocks, LinearResult of);

bool is_transposed(std::string_view name);
std::string_view stored_name(std::string_view name);
// What its rows are: queries, keys or, of a square one, columns.
Index Shape::*rows_of(std::string_view name);
Index rows_of(std::string_view name, const Shape& shape);
// With so many rows of what is left in it.
ProductShape extents(const Product& product, Index rows, Index d);

}  // namespace redblue
