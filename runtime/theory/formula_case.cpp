#include "runtime/theory/formula_case.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace redblue {
namespace {

constexpr int kTries = 400;

// Returns a weighted sum of the reads and writes of all phases, so that a change of one shows.
Index moved(const std::vector<PhaseCost>& phases) {
  Words sum;
  Words weight = 1;
  for (const PhaseCost& phase : phases) {
    sum += weight * (phase.reads + 2 * phase.writes);
    weight += 4;
  }
  return sum.value();
}

// Returns whether the block is a number, not a size. Such blocks are the groups of keys or of row
// blocks, and the blocks of keys that are in fast memory at once.
bool is_number(std::string_view block) {
  return block == kKeyGroups || block == kQueryGroups || block == kPrefetch;
}

}  // namespace

Index uniform(std::mt19937_64& random, Index from, Index to) {
  return from + static_cast<Index>(random() % static_cast<std::uint64_t>(to - from + 1));
}

bool Condition::holds(const Sizes& sizes) const {
  switch (is) {
    case Is::equal:
      return sizes[of] == sizes[than];
    case Is::less:
      return sizes[of] < sizes[than];
    case Is::at_most:
      return sizes[of] <= sizes[than];
    case Is::at_most_quarters:
      return 4 * sizes[of] <= number * sizes[than];
    case Is::sum_at_most:
      return sizes[of] + sizes[with] <= sizes[than];
    case Is::sum_at_least:
      return sizes[of] + sizes[with] >= sizes[than];
    case Is::at_least:
      return sizes[of] >= number;
    case Is::at_most_number:
      return sizes[of] <= number;
  }
  return false;
}

void Condition::force(Sizes& sizes, std::mt19937_64& random) const {
  if (holds(sizes)) {
    return;
  }
  const auto part = [&](Index least) {
    return std::max<Index>(1, sizes[than] / uniform(random, least, 9));
  };
  switch (is) {
    case Is::equal:
      sizes[of] = sizes[than];
      break;
    case Is::less:
    case Is::at_most:
      std::swap(sizes[of], sizes[than]);
      break;
    case Is::at_most_quarters:
      if (sizes[of] > sizes[than]) {
        std::swap(sizes[of], sizes[than]);
      }
      sizes[of] = std::min(
          sizes[of], number == 3 ? std::max<Index>(1, sizes[than] * 3 / 4) : part(4 / number));
      break;
    case Is::sum_at_most:
      sizes[of] = part(2);
      sizes[with] = part(2);
      break;
    case Is::sum_at_least:
      sizes[of] = std::max(sizes[of], sizes[than] - part(1));
      sizes[with] = std::max(sizes[with], sizes[than] - sizes[of]);
      break;
    case Is::at_least:
      sizes[of] = number;
      break;
    case Is::at_most_number:
      sizes[of] = uniform(random, 1, number);
      break;
  }
}

FormulaCase::FormulaCase(const Kernel& kernel, const Plan& plan)
    : kernel_(&kernel), problem_(plan.problem), blocks_(plan.blocks) {
  const Shape& shape = problem_.shape;
  quantities_ = {{"n", &Shape::n}, {"m", &Shape::m}, {"d", &Shape::d}};
  sizes_ = {shape.n, shape.m, shape.d};
  if (shape.dv != shape.d) {
    quantities_.push_back({"dv", &Shape::dv});
    sizes_.push_back(shape.dv);
  }
  for (const auto& [name, size] : plan.blocks) {
    if (is_number(name)) {
      fixed_.add(name, size);
    } else {
      quantities_.push_back({name});
      sizes_.push_back(size);
    }
  }
  // Fewer keys make fewer groups, and a plan with one group has other phases.
  if (const Index groups = key_groups_of(plan.blocks); groups > 1) {
    add({.of = kM, .is = Condition::Is::at_least, .number = groups});
  }
  cuts_.resize(quantities_.size());
  whole_.resize(quantities_.size());
  find_cuts();
  for (std::size_t block = 0; block < quantities_.size(); ++block) {
    const std::vector<std::size_t>& lengths = cuts_[block];
    if (lengths.size() == 1 && sizes_[block] >= sizes_[lengths[0]]) {
      whole_[block] = lengths[0];
      continue;
    }
    for (const std::size_t length : lengths) {
      if (sizes_[block] < sizes_[length]) {
        add({.of = block, .is = Condition::Is::less, .than = length});
      } else {
        add({.of = length, .is = Condition::Is::at_most, .than = block});
      }
    }
  }
}

void FormulaCase::add(const Condition& condition) {
  using Is = Condition::Is;
  for (Condition& other : conditions_) {
    const bool same = other.of == condition.of && other.is == condition.is;
    if (other == condition) {
      return;
    }
    if (same && condition.is == Is::at_least) {
      other.number = std::max(other.number, condition.number);
      return;
    }
    if (same && condition.is == Is::at_most_number) {
      other.number = std::min(other.number, condition.number);
      return;
    }
  }
  conditions_.push_back(condition);
}

// A block cuts a length if a word more than a multiple of the block costs more than a usual word.
// Words that grow by a polynomial of degree two have a constant second difference.
void FormulaCase::find_cuts() {
  std::mt19937_64 random(1);
  const auto crossed = [&](Sizes sizes, std::size_t length) {
    std::array<Index, 4> words{};
    for (Index& of : words) {
      of = moved(cost(sizes));
      ++sizes[length];
    }
    return words[2] - 2 * words[1] + words[0] != words[3] - 2 * words[2] + words[1];
  };
  const auto draw_apart = [&](std::size_t block, std::size_t length) -> std::optional<Sizes> {
    Sizes sizes;
    for (std::size_t which = 0; which < quantities_.size(); ++which) {
      sizes.push_back(is_length(which) ? uniform(random, 60, 150) : uniform(random, 4, 50));
    }
    sizes[length] = sizes[block] * uniform(random, 2, 4);
    for (std::size_t other = 0; other < quantities_.size(); ++other) {
      if (!is_length(other) && other != block &&
          ceil_div(sizes[length], sizes[other]) != ceil_div(sizes[length] + 3, sizes[other])) {
        return std::nullopt;
      }
    }
    return sizes;
  };
  for (std::size_t block = 0; block < quantities_.size(); ++block) {
    for (std::size_t length = 0; !is_length(block) && is_length(length); ++length) {
      int tried = 0, crossings = 0;
      for (int k = 0; k < kTries && tried < 12; ++k) {
        if (const auto sizes = draw_apart(block, length)) {
          ++tried;
          crossings += crossed(*sizes, length) ? 1 : 0;
        }
      }
      if (2 * crossings > tried) {
        cuts_[block].push_back(length);
      }
    }
  }
}

bool FormulaCase::cuts(std::size_t block, std::size_t length) const {
  return std::ranges::count(cuts_[block], length) > 0 && sizes_[block] < sizes_[length];
}

void FormulaCase::tie(Sizes& sizes) const {
  for (std::size_t block = 0; block < sizes.size(); ++block) {
    if (whole_[block]) {
      sizes[block] = sizes[*whole_[block]];
    }
  }
}

bool FormulaCase::holds(const Sizes& sizes, const std::vector<Condition>& further) const {
  const auto does = [&](const Condition& condition) { return condition.holds(sizes); };
  const auto is_positive = [](Index size) { return size > 0; };
  return std::ranges::all_of(sizes, is_positive) && std::ranges::all_of(conditions_, does) &&
         std::ranges::all_of(further, does);
}

std::optional<Sizes> FormulaCase::draw(std::mt19937_64& random, Index most,
                                       const std::vector<Condition>& further) const {
  std::vector<Condition> all = conditions_;
  all.insert(all.end(), further.begin(), further.end());
  for (int k = 0; k < kTries; ++k) {
    Sizes sizes;
    const bool any_scale = random() % 2 == 0;
    for (std::size_t which = 0; which < quantities_.size(); ++which) {
      // Sizes of any scale; or lengths of one scale, and blocks that cut them into a few pieces.
      const Index length = uniform(random, std::max<Index>(most / 8, 2), most);
      sizes.push_back(any_scale
                          ? uniform(random, 1, std::max<Index>(2, most >> uniform(random, 0, 14)))
                      : is_length(which) ? length
                                         : ceil_div(length, uniform(random, 1, 9)));
    }
    for (std::size_t round = 0; round <= all.size(); ++round) {
      for (const Condition& condition : all) {
        condition.force(sizes, random);
      }
    }
    tie(sizes);
    if (holds(sizes, further)) {
      return sizes;
    }
  }
  return std::nullopt;
}

std::optional<Sizes> FormulaCase::near(const Sizes& sizes, Index by, std::mt19937_64& random,
                                       const std::vector<Condition>& further) const {
  for (int k = 0; k < kTries; ++k) {
    Sizes moved = sizes;
    for (Index& size : moved) {
      size = std::max<Index>(1, size + uniform(random, -by, by));
    }
    for (const Condition& condition : further) {
      if (condition.is == Condition::Is::equal) {
        condition.force(moved, random);
      }
    }
    tie(moved);
    if (holds(moved, further)) {
      return moved;
    }
  }
  return std::nullopt;
}

std::vector<PhaseCost> FormulaCase::cost(const Sizes& sizes) const {
  Problem problem = problem_;
  problem.shape.dv = sizes[2];
  Blocks blocks = blocks_;
  for (std::size_t which = 0; which < quantities_.size(); ++which) {
    if (const Quantity& quantity = quantities_[which]; quantity.length != nullptr) {
      problem.shape.*quantity.length = sizes[which];
    } else {
      blocks.set(quantity.name, sizes[which]);
    }
  }
  return kernel_->formula.cost(problem, blocks);
}

}  // namespace redblue
