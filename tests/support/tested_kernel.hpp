#pragma once
// Every kernel under each of its names, so that a test needs only a shape.

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/sanitized.hpp"

namespace redblue {

struct TestedKernel {
  TestedKernel(const KernelName& of)  // NOLINT: a spelling is a kernel to test
      : name(of.text()),
        given(of.given()),
        returns(of.results()),
        summary(of.summary()),
        kernel(of.kernel),
        sharing(of.sharing),
        activation(of.activation) {}

  std::string name;
  std::vector<Signature> given, returns;
  std::string summary;
  const Kernel* kernel;
  Sharing sharing;
  Activation activation;
  Mask mask = {};
  Wanted wanted = {};
  Index sum_words = 1;

  // Restricts the results to `some`. Requires: the kernel can compute them alone.
  void want(const Wanted& some) {
    wanted = some;
    Problem of_some;
    of_some.wanted = some;
    of_some.activation = activation;
    of_some.sharing = sharing;
    returns = kernel->returned(of_some);
  }

  operator const Kernel&() const { return *kernel; }  // NOLINT: what is asked of any of them

  // Returns the shape, with n keys if queries are keys.
  [[nodiscard]] Shape shape(Shape of) const {
    of.m = sharing == Sharing::self ? of.n : of.m;
    return of;
  }
  // Returns the problem of this shape.
  [[nodiscard]] Problem problem(const Shape& of) const {
    Problem problem(shape(of), sharing);
    problem.mask = mask;
    problem.wanted = wanted;
    problem.sum_words = sum_words;
    problem.activation = activation;
    return kernel->with_inputs(problem);
  }
  // Returns whether values may have a width other than the keys' width.
  [[nodiscard]] bool takes_dv() const {
    return inputs_of(kernel->pass) == Inputs::plain && sharing == Sharing::none;
  }
  [[nodiscard]] Blocks blocks(const Shape& shape, Index M, Objective objective,
                              Index prefetch = 1) const {
    return kernel->blocks(problem(shape), {M, prefetch}, objective);
  }
  [[nodiscard]] Plan plan(const Shape& shape, Index M, Objective objective = Objective::words,
                          Index prefetch = 1) const {
    return kernel->plan(problem(shape), {M, prefetch}, objective);
  }
  [[nodiscard]] Plan plan(const Shape& shape, Index M, const Blocks& blocks) const {
    return kernel->plan(problem(shape), M, blocks);
  }
  [[nodiscard]] Index least_M(const Shape& shape, Index prefetch = 1) const {
    return kernel->least_M(problem(shape), prefetch);
  }
  [[nodiscard]] std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) const {
    return kernel->formula.cost(problem(shape), blocks);
  }
  // `groups_keys`: the kernel takes keys in groups, as forward/rows and backward/rows do.
  // `groups_queries`: it also takes queries in groups, as gradients/rows-keys does. `in_groups`:
  // the plan with this number of groups, and the M that it needs.
  [[nodiscard]] bool groups_keys() const { return takes(kKeyGroups); }
  [[nodiscard]] bool groups_queries() const { return takes(kQueryGroups); }
  [[nodiscard]] Plan in_groups(const Plan& plan, Index groups) const {
    return in_groups(plan, groups, groups);
  }
  [[nodiscard]] Plan in_groups(const Plan& plan, Index groups, Index query_groups) const {
    Blocks blocks = plan.blocks;
    blocks.drop(kKeyGroups);
    blocks.add(std::string(kKeyGroups), groups);
    if (groups_queries()) {
      blocks.drop(kQueryGroups);
      blocks.add(std::string(kQueryGroups), query_groups);
    }
    const Words peak = total(kernel->formula.cost(plan.problem, blocks)).peak;
    return kernel->plan(plan.problem, std::max(plan.M, peak.value()), blocks);
  }
  [[nodiscard]] bool streams_keys() const { return kernel->streams_keys(); }
  [[nodiscard]] const std::optional<Split>& split() const { return kernel->schedule.split; }

 private:
  [[nodiscard]] bool takes(std::string_view block) const {
    const auto& all = kernel->fitting.optional_blocks;
    return std::ranges::find(all, block, &OptionalBlock::name) != all.end();
  }
};

inline std::vector<TestedKernel> tested_kernels() {
  return {kernel_names().begin(), kernel_names().end()};
}
// Returns the kernels that take any n and m. In the others, queries are keys.
inline std::vector<TestedKernel> tested_kernels_of_any_shape() {
  std::vector<TestedKernel> all = tested_kernels();
  std::erase_if(all, [](const TestedKernel& kernel) { return kernel.sharing == Sharing::self; });
  return all;
}
// The same for tests that are slow for each kernel. A build with a sanitizer tests every fifth
// kernel.
inline std::vector<TestedKernel> some_tested_kernels() {
  const std::vector<TestedKernel> all = tested_kernels_of_any_shape();
  std::vector<TestedKernel> some;
  for (std::size_t k = 0; k < all.size(); k += kSanitized ? 5 : 1) {
    some.push_back(all[k]);
  }
  return some;
}
// Returns the kernels that take this activation.
inline std::vector<TestedKernel> tested_kernels_of(Activation activation) {
  std::vector<TestedKernel> all;
  for (KernelName name : kernel_names()) {
    if (name.kernel->takes(activation)) {
      name.activation = activation;
      all.emplace_back(name);
    }
  }
  return all;
}
inline TestedKernel tested_kernel(std::string_view name) {
  const auto found = parse_kernel_name(name);
  return found ? TestedKernel(*found)
               : throw std::out_of_range("no kernel is called " + std::string(name));
}

}  // namespace redblue
