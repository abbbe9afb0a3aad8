#include "kernels/registry.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"

namespace redblue {

namespace {

// The same schedule for Q, K, V as they are in place of A1 X, A2 and A3 Y.
Kernel plain(Kernel kernel, std::string_view name, std::string_view summary) {
  kernel.kin = kernel.name;
  kernel.name = name;
  kernel.summary = summary;
  kernel.pass = kernel.pass == Pass::forward ? Pass::attention : Pass::gradients;
  for (Signature& operand : kernel.operands) {
    operand = operand.name == kA1.name   ? kQ
              : operand.name == kA2.name ? kK
              : operand.name == kA3.name ? kV
                                         : operand;
  }
  std::erase_if(kernel.operands, [](const Signature& operand) {
    return operand.name == kX.name || operand.name == kY.name;
  });
  std::erase_if(kernel.returns, [](const Signature& result) { return result.name == kg.name; });
  kernel.numerics.X_meets_keys = false;
  kernel.numerics.Y_meets_rows = false;
  kernel.numerics.Y_meets_rows_if_shared = false;
  return kernel;
}

Kernel flash_gradients() {
  Kernel kernel =
      plain(backward_flash(), "gradients/flash",
            "FlashAttention's loops: column blocks stay, dQ is read and written once for each");
  kernel.optional_results = {kdQ.name, kdK.name, kdV.name};
  kernel.shares_keys = true;
  return kernel;
}

Kernel rows_keys_gradients() {
  return gradients_rows_keys("gradients/rows-keys",
                             "two passes: rows of Q, dO and dQ stay, then keys, values, dK and dV",
                             Start::given);
}

}  // namespace

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = {
      matmul_blocked(),
      matmul_stationary_a(),
      matmul_stationary_b(),
      matmul_stationary_c(),
      with_masks(forward_naive()),
      with_masks(forward_small()),
      with_masks(forward_flash()),
      with_masks(forward_rows()),
      with_masks(forward_rows_resident()),
      with_masks(forward_columns()),
      with_masks(forward_tiles()),
      with_masks(plain(forward_rows(), "attention/rows",
                       "row blocks of c Q and of the sum e V stay, keys pass")),
      with_masks(plain(forward_rows_resident(), "attention/rows-resident",
                       "most keys stay; row blocks pass")),
      with_masks(
          plain(forward_columns(), "attention/columns",
                "key blocks of K and V stay, queries pass; O is added to in place: for few keys")),
      with_masks(
          plain(forward_tiles(), "attention/tiles",
                "raw scores in the slow store, L made along the way; O = exp(s - L) V a product")),
      with_masks(backward_naive()),
      with_masks(backward_small()),
      with_masks(backward_large()),
      with_masks(backward_flash()),
      with_masks(backward_rows(
          "backward/rows",
          "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each",
          Start::given, Sink::gradient)),
      with_masks(backward_rows("backward/rows-w",
                               "backward/rows with W in the slow store; g = A1^T W is a product",
                               Start::given, Sink::stored)),
      with_masks(
          backward_rows("backward/rows-onepass",
                        "backward/rows from nothing: q relative to its running mean, two sums stay",
                        Start::nothing, Sink::gradient)),
      with_masks(
          backward_rows("backward/rows-onepass-w",
                        "backward/rows-onepass with W in the slow store; g = A1^T W is a product",
                        Start::nothing, Sink::stored)),
      with_masks(backward_score_rows()),
      with_masks(backward_rows_xg()),
      with_masks(backward_rows_resident()),
      with_masks(backward_columns()),
      with_masks(backward_rows_q(Start::given)),
      with_masks(backward_rows_q(Start::nothing)),
      with_masks(backward_tiles()),
      with_masks(backward_tiles_sqp()),
      with_masks(backward_tiles_sq()),
      with_masks(flash_gradients()),
      with_masks(rows_keys_gradients()),
      with_masks(gradients_rows_keys(
          "gradients/rows-keys-onepass",
          "gradients/rows-keys from nothing: q relative to its running mean", Start::nothing)),
      with_masks(gradients_score_rows()),
      with_masks(gradients_tiles()),
      with_masks(layer_of(
          flash_gradients(), "layer/flash",
          "gradients/flash between Q = A1 X, V = A3 Y and the gradients of these products")),
      with_masks(layer_of(
          rows_keys_gradients(), "layer/rows-keys",
          "gradients/rows-keys between Q = A1 X, V = A3 Y and the gradients of these products")),
      with_masks(layer_of(
          gradients_score_rows(), "layer/score-rows",
          "gradients/score-rows between Q = A1 X, V = A3 Y and the gradients of these products")),
      with_masks(layer_of(
          gradients_tiles(), "layer/tiles",
          "gradients/tiles between Q = A1 X, V = A3 Y and the gradients of these products")),
      with_causal_mask(linear_rows(LinearResult::output)),
      with_causal_mask(linear_products(LinearResult::output)),
      with_causal_mask(linear_rows(LinearResult::gradient)),
      with_causal_mask(linear_products(LinearResult::gradient)),
  };
  return all;
}

const std::vector<Kernel>& sparse_kernels() {
  static const std::vector<Kernel> all = {
      matmul_sparse_stay(),       matmul_sparse_pass(),        sparse_rows(Pass::logsumexp),
      sparse_rows(Pass::forward), sparse_rows(Pass::backward), sparse_x(Pass::logsumexp),
      sparse_x(Pass::forward),    sparse_x(Pass::backward),    logsumexp_sparse_tiles(),
      forward_sparse_tiles(),     backward_sparse_tiles(),
  };
  return all;
}

const Kernel& find_kernel(std::string_view name) {
  for (const std::vector<Kernel>* of : {&kernels(), &sparse_kernels()}) {
    if (const auto found = std::ranges::find(*of, name, &Kernel::name); found != of->end()) {
      return *found;
    }
  }
  throw std::out_of_range("no kernel is called " + std::string(name));
}

}  // namespace redblue
