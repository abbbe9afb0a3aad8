#include "kernels/registry.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/attention.hpp"
#include "kernels/masked.hpp"

namespace redblue {

namespace {

// Returns a kernel with the same schedule for Q, K, V instead of A1 X, A2 and A3 Y.
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

// The kernels with their names, so that a search by name makes only one kernel. A test checks the
// names.
constexpr KernelList::Entry kDense[] = {
    {"matmul/blocked", [] { return matmul_blocked(); }},
    {"matmul/stationary-a", [] { return matmul_stationary_a(); }},
    {"matmul/stationary-b", [] { return matmul_stationary_b(); }},
    {"matmul/stationary-c", [] { return matmul_stationary_c(); }},
    {"forward/naive", [] { return with_masks(forward_naive()); }},
    {"forward/small", [] { return with_masks(forward_small()); }},
    {"forward/flash", [] { return with_masks(forward_flash()); }},
    {"forward/rows", [] { return with_masks(forward_rows()); }},
    {"forward/rows-resident", [] { return with_masks(forward_rows_resident()); }},
    {"forward/columns", [] { return with_masks(forward_columns()); }},
    {"forward/tiles", [] { return with_masks(forward_tiles()); }},
    {"attention/rows",
     [] {
       return with_masks(plain(forward_rows(), "attention/rows",
                               "row blocks of c Q and of the sum e V stay, keys pass"));
     }},
    {"attention/rows-resident",
     [] {
       return with_masks(plain(forward_rows_resident(), "attention/rows-resident",
                               "most keys stay; row blocks pass"));
     }},
    {"attention/columns",
     [] {
       return with_masks(
           plain(forward_columns(), "attention/columns",
                 "key blocks of K and V stay, queries pass; O is added to in place: for few keys"));
     }},
    {"attention/tiles",
     [] {
       return with_masks(
           plain(forward_tiles(), "attention/tiles",
                 "raw scores in slow memory, L made along the way; O = exp(s - L) V a product"));
     }},
    {"backward/naive", [] { return with_masks(backward_naive()); }},
    {"backward/small", [] { return with_masks(backward_small()); }},
    {"backward/large", [] { return with_masks(backward_large()); }},
    {"backward/flash", [] { return with_masks(backward_flash()); }},
    {"backward/rows",
     [] {
       return with_masks(backward_rows(
           "backward/rows",
           "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once each",
           Start::given, Sink::gradient));
     }},
    {"backward/rows-w",
     [] {
       return with_masks(backward_rows(
           "backward/rows-w", "backward/rows with W in slow memory; g = A1^T W is a product",
           Start::given, Sink::stored));
     }},
    {"backward/rows-onepass",
     [] {
       return with_masks(backward_rows(
           "backward/rows-onepass",
           "backward/rows from nothing: q relative to its running mean, two sums stay",
           Start::nothing, Sink::gradient));
     }},
    {"backward/rows-onepass-w",
     [] {
       return with_masks(
           backward_rows("backward/rows-onepass-w",
                         "backward/rows-onepass with W in slow memory; g = A1^T W is a product",
                         Start::nothing, Sink::stored));
     }},
    {"backward/score-rows", [] { return with_masks(backward_score_rows()); }},
    {"backward/rows-xg", [] { return with_masks(backward_rows_xg()); }},
    {"backward/rows-resident", [] { return with_masks(backward_rows_resident()); }},
    {"backward/columns", [] { return with_masks(backward_columns()); }},
    {"backward/rows-q", [] { return with_masks(backward_rows_q(Start::given)); }},
    {"backward/rows-q-onepass", [] { return with_masks(backward_rows_q(Start::nothing)); }},
    {"backward/tiles", [] { return with_masks(backward_tiles()); }},
    {"backward/tiles-sqp", [] { return with_masks(backward_tiles_sqp()); }},
    {"backward/tiles-sq", [] { return with_masks(backward_tiles_sq()); }},
    {"gradients/flash", [] { return with_masks(flash_gradients()); }},
    {"gradients/rows-keys", [] { return with_masks(rows_keys_gradients()); }},
    {"gradients/rows-keys-onepass",
     [] {
       return with_masks(gradients_rows_keys(
           "gradients/rows-keys-onepass",
           "gradients/rows-keys from nothing: q relative to its running mean", Start::nothing));
     }},
    {"gradients/score-rows", [] { return with_masks(gradients_score_rows()); }},
    {"gradients/tiles", [] { return with_masks(gradients_tiles()); }},
    {"gradients/resident",
     [] {
       return with_masks(gradients_resident(
           "gradients/resident",
           "one pass of queries: K, V, dK and dV of the keys that the next queries meet stay",
           ResidentRows::keys));
     }},
    {"gradients/resident-queries",
     [] {
       return with_masks(gradients_resident(
           "gradients/resident-queries",
           "one pass of keys: Q, dO and dQ of the queries that the next keys meet stay",
           ResidentRows::queries));
     }},
    {"gradients/sources", [] { return with_masks(gradients_sources()); }},
    {"layer/flash",
     [] {
       return with_masks(layer_of(
           flash_gradients(), "layer/flash",
           "gradients/flash between Q = A1 X, V = A3 Y and the gradients of these products"));
     }},
    {"layer/rows-keys",
     [] {
       return with_masks(layer_of(
           rows_keys_gradients(), "layer/rows-keys",
           "gradients/rows-keys between Q = A1 X, V = A3 Y and the gradients of these products"));
     }},
    {"layer/score-rows",
     [] {
       return with_masks(layer_of(
           gradients_score_rows(), "layer/score-rows",
           "gradients/score-rows between Q = A1 X, V = A3 Y and the gradients of these products"));
     }},
    {"layer/tiles",
     [] {
       return with_masks(layer_of(
           gradients_tiles(), "layer/tiles",
           "gradients/tiles between Q = A1 X, V = A3 Y and the gradients of these products"));
     }},
    {"linear/rows", [] { return with_causal_mask(linear_rows(LinearResult::output)); }},
    {"linear/products", [] { return with_causal_mask(linear_products(LinearResult::output)); }},
    {"linear-gradient/rows", [] { return with_causal_mask(linear_rows(LinearResult::gradient)); }},
    {"linear-gradient/products",
     [] { return with_causal_mask(linear_products(LinearResult::gradient)); }},
};
constexpr KernelList::Entry kSparse[] = {
    {"matmul/sparse-stay", [] { return matmul_sparse_stay(); }},
    {"matmul/sparse-pass", [] { return matmul_sparse_pass(); }},
    {"logsumexp/sparse-rows", [] { return sparse_rows(Pass::logsumexp); }},
    {"forward/sparse-rows", [] { return sparse_rows(Pass::forward); }},
    {"backward/sparse-rows", [] { return sparse_rows(Pass::backward); }},
    {"logsumexp/sparse-x", [] { return sparse_x(Pass::logsumexp); }},
    {"forward/sparse-x", [] { return sparse_x(Pass::forward); }},
    {"backward/sparse-x", [] { return sparse_x(Pass::backward); }},
    {"logsumexp/sparse-tiles", [] { return logsumexp_sparse_tiles(); }},
    {"forward/sparse-tiles", [] { return forward_sparse_tiles(); }},
    {"backward/sparse-tiles", [] { return backward_sparse_tiles(); }},
};

}  // namespace

KernelList::KernelList(std::span<const Entry> entries)
    : entries_(entries), made_(std::make_unique<Made[]>(entries.size())) {}

const Kernel& KernelList::operator[](std::size_t place) const {
  Made& made = made_[place];
  std::call_once(made.once, [&] { made.kernel.emplace(entries_[place].make()); });
  return *made.kernel;
}

const Kernel* KernelList::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr
                                 : &(*this)[static_cast<std::size_t>(found - entries_.begin())];
}

const KernelList& kernels() {
  static const KernelList all(kDense);
  return all;
}

const KernelList& sparse_kernels() {
  static const KernelList all(kSparse);
  return all;
}

const Kernel& find_kernel(std::string_view name) {
  for (const KernelList* of : {&kernels(), &sparse_kernels()}) {
    if (const Kernel* found = of->find(name)) {
      return *found;
    }
  }
  if (const Kernel* loaded = find_loaded(name)) {
    return *loaded;
  }
  throw std::out_of_range("no kernel is called " + std::string(name));
}

}  // namespace redblue
