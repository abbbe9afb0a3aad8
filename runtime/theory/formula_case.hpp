#pragma once
// Which formula of a kernel: its problem and blocks as quantities, and how they are to each other
// in one plan. A block that cuts a length is smaller than it, or takes it whole.

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

// A length of the problem, or, without one, a block of the plan.
struct Quantity {
  std::string name;
  Index Shape::*length = nullptr;
};

// A quantity is as large as another, less, or at most as large, or at most some quarters of it; two
// together are at most, or at least, as large as a third; or one is at least, or at most, a number.
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
  // Changes sizes towards it.
  void force(Sizes& sizes, std::mt19937_64& random) const;
};

class FormulaCase {
 public:
  // Of a plan of a dense problem without a mask.
  FormulaCase(const Kernel& kernel, const Plan& plan);

  [[nodiscard]] const std::vector<Quantity>& quantities() const { return quantities_; }
  static constexpr std::size_t kN = 0, kM = 1;  // their numbers
  [[nodiscard]] static bool is_n_or_m(std::size_t which) { return which <= kM; }
  [[nodiscard]] bool is_length(std::size_t which) const {
    return which < quantities_.size() && quantities_[which].length != nullptr;
  }
  // Of the plan.
  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  // Blocks that take a length whole: each with its length.
  [[nodiscard]] std::optional<std::size_t> whole(std::size_t block) const { return whole_[block]; }
  // Blocks of the plan that are no quantities: how many groups there are, which stays as it is.
  [[nodiscard]] const Blocks& fixed() const { return fixed_; }
  // Whether a block, smaller than the length, cuts it here.
  [[nodiscard]] bool cuts(std::size_t block, std::size_t length) const;
  [[nodiscard]] const std::vector<Condition>& conditions() const { return conditions_; }
  void add(const Condition& condition);

  // Sizes of which these and further conditions hold, lengths of at most so much; nothing where
  // chance finds none.
  [[nodiscard]] std::optional<Sizes> draw(std::mt19937_64& random, Index most,
                                          const std::vector<Condition>& further = {}) const;
  // With blocks that take a length whole as long as that.
  void tie(Sizes& sizes) const;
  // These, or others within `by` of them.
  [[nodiscard]] std::optional<Sizes> near(const Sizes& sizes, Index by, std::mt19937_64& random,
                                          const std::vector<Condition>& further) const;
  [[nodiscard]] bool holds(const Sizes& sizes, const std::vector<Condition>& further = {}) const;

  // What the kernel says of these sizes.
  [[nodiscard]] std::vector<PhaseCost> cost(const Sizes& sizes) const;

 private:
  void find_cuts();

  const Kernel* kernel_;
  Problem problem_;
  Blocks blocks_, fixed_;
  std::vector<Quantity> quantities_;
  Sizes sizes_;
  std::vector<std::vector<std::size_t>> cuts_;  // of each quantity, where it is a block
  std::vector<std::optional<std::size_t>> whole_;
  std::vector<Condition> conditions_;
};

// From one to another, both among them; the same on every platform.
Index uniform(std::mt19937_64& random, Index from, Index to);

}  // namespace redblue
