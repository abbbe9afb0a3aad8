#pragma once
// A case of a kernel's closed form: the range of sizes in which one formula holds. The quantities
// are the lengths of the problem and the block sizes. The conditions say how they compare in one
// plan. A block that cuts a length is smaller than the length, or takes it whole.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/theory/polynomial.hpp"

namespace redblue {

// A length of the problem. If `length` is null, a block of the plan.
struct Quantity {
  std::string name;
  Index Shape::*length = nullptr;
};

// A condition on sizes. `of`, `than` and `with` are the numbers of quantities.
//
//   equal, less, at_most          size of `of` ==, <, <= size of `than`
//   at_most_quarters              4 * size of `of` <= number * size of `than`
//   sum_at_most, sum_at_least     size of `of` + size of `with` <=, >= size of `than`
//   at_least, at_most_number      size of `of` >=, <= number
struct Condition {
  enum class Is {
    equal,
    less,
    at_most,
    at_most_quarters,
    sum_at_most,
    sum_at_least,
    at_least,
    at_most_number
  };
  std::size_t of = 0;
  Is is = Is::less;
  std::size_t than = 0;
  std::size_t with = 0;
  Index number = 0;
  friend bool operator==(const Condition&, const Condition&) = default;

  [[nodiscard]] bool holds(const Sizes& sizes) const;
  // Changes `sizes` so that the condition holds, or nearly holds.
  void force(Sizes& sizes, std::mt19937_64& random) const;
};

class FormulaCase {
 public:
  // Requires: a plan of a dense problem without a mask.
  FormulaCase(const Kernel& kernel, const Plan& plan);

  [[nodiscard]] const std::vector<Quantity>& quantities() const { return quantities_; }
  static constexpr std::size_t kN = 0, kM = 1;  // their numbers as quantities
  [[nodiscard]] static bool is_n_or_m(std::size_t which) { return which <= kM; }
  [[nodiscard]] bool is_length(std::size_t which) const {
    return which < quantities_.size() && quantities_[which].length != nullptr;
  }
  // Returns the sizes of the plan.
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  // Returns the length that this block takes whole, if it takes one whole.
  [[nodiscard]] std::optional<std::size_t> whole(std::size_t block) const { return whole_[block]; }
  // Returns the blocks of the plan that are numbers, not sizes: groups and prefetch. They stay
  // fixed.
  [[nodiscard]] const Blocks& fixed() const { return fixed_; }
  // Returns whether the block cuts the length in this case and is smaller than it.
  [[nodiscard]] bool cuts(std::size_t block, std::size_t length) const;
  [[nodiscard]] const std::vector<Condition>& conditions() const { return conditions_; }
  void add(const Condition& condition);

  // Returns random sizes that meet these and the further conditions, with lengths of at most
  // `most`. Returns nullopt if no draw succeeds.
  [[nodiscard]] std::optional<Sizes> draw(std::mt19937_64& random, Index most,
                                          const std::vector<Condition>& further = {}) const;
  // Sets each block that takes a length whole to the size of that length.
  void tie(Sizes& sizes) const;
  // Returns sizes that differ from `sizes` by at most `by` and meet all conditions. Returns nullopt
  // if no draw succeeds.
  [[nodiscard]] std::optional<Sizes> near(const Sizes& sizes, Index by, std::mt19937_64& random,
                                          const std::vector<Condition>& further) const;
  [[nodiscard]] bool holds(const Sizes& sizes, const std::vector<Condition>& further = {}) const;

  // Returns the kernel's costs at these sizes, phase by phase.
  [[nodiscard]] std::vector<PhaseCost> cost(const Sizes& sizes) const;

 private:
  void find_cuts();

  const Kernel* kernel_;
  Problem problem_;
  Blocks blocks_, fixed_;
  std::vector<Quantity> quantities_;
  Sizes sizes_;
  std::vector<std::vector<std::size_t>> cuts_;  // for each block, the lengths that it cuts
  std::vector<std::optional<std::size_t>> whole_;
  std::vector<Condition> conditions_;
};

// Returns a random number from `from` to `to`, both included. It is the same on every platform.
Index uniform(std::mt19937_64& random, Index from, Index to);

}  // namespace redblue
