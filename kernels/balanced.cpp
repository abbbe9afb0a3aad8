#include "kernels/balanced.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/fit.hpp"

namespace redblue {
namespace {

std::string_view phase_of(std::string_view block) {
  const std::size_t dot = block.rfind('.');
  return dot == std::string_view::npos ? "" : block.substr(0, dot);
}

std::string_view last_name(std::string_view block) {
  return block.substr(block.rfind('.') + 1);
}

// Returns whether the block is the rows or keys of tiles of scores: Br, dKV.Bc.
bool is_of_scores(std::string_view block) {
  return last_name(block) == "Br" || last_name(block) == "Bc";
}

// Returns whether the block is a side of tiles. Other blocks are numbers of groups or of resident
// keys, or switches.
bool is_size(std::string_view block) {
  const std::string_view name = last_name(block);
  return name.starts_with('B') || name == "rows" || name == "cols" || name == "depth" ||
         name == "piece";
}

// Counts the words that blocks of a kernel move and hold in one level.
class Counted {
 public:
  Counted(const Kernel& kernel, const Problem& problem, Index M)
      : kernel_(&kernel), problem_(kernel.with_inputs(problem)), M_(M) {}

  [[nodiscard]] PhaseCost of(const Blocks& blocks) const {
    return total(kernel_->formula.cost(problem_, blocks));
  }
  [[nodiscard]] bool fits(const Blocks& blocks) const { return of(blocks).peak <= Words(M_); }
  [[nodiscard]] double words(const Blocks& blocks) const {
    const PhaseCost all = of(blocks);
    const Words sum = all.reads + all.writes;
    return sum.overflowed() ? std::numeric_limits<double>::infinity()
                            : static_cast<double>(sum.value());
  }
  // Sets this block to the largest size that fits with the other blocks, from `least` to `most` in
  // steps of `step`.
  void grow(Blocks& blocks, std::string_view name, Index least, Index most, Index step = 1) const {
    const auto size = [&](Index steps) { return std::min(least + (steps - 1) * step, most); };
    const auto with = [&](Index steps) {
      Blocks grown = blocks;
      grown.set(name, size(steps));
      return grown;
    };
    if (least < most) {
      const Index all = (most - least) / step + 1;
      blocks.set(name, size(largest(all, [&](Index steps) { return fits(with(steps)); })));
    }
  }
  // Sets this block to the smallest size, from `least`, that moves no more words.
  void shrink(Blocks& blocks, std::string_view name, Index least) const {
    const double now = words(blocks);
    const Index size = blocks[name];
    const auto less = [&](Index by) {
      Blocks smaller = blocks;
      smaller.set(name, size - by);
      return words(smaller) <= now;
    };
    if (least < size && less(1)) {
      blocks.set(name, size - largest(size - least, less));
    }
  }

 private:
  const Kernel* kernel_;
  Problem problem_;
  Index M_;
};

constexpr std::string_view kResident = "resident";

// Returns whether the block is a number of resident keys or columns.
bool stays(std::string_view block) {
  return block == kResident || block == kKept;
}

constexpr Index kVector = 16;

// Returns the mean time of tiles of scores with these sizes, over the time of full vectors. Each
// block takes `passing` more lanes.
double time_of_tiles(const Blocks& blocks, Index passing) {
  double sum = 0, sizes = 0;
  for (const auto& [name, size] : blocks) {
    if (is_of_scores(name)) {
      sum += static_cast<double>(ceil_div(size, kVector) * kVector + passing) /
             static_cast<double>(size);
      sizes += 1;
    }
  }
  return sizes == 0 ? 1 : sum / sizes;
}

// Drops the lanes of a last vector if they are less than an eighth of the size.
Index in_vectors(Index size) {
  const Index beyond = size % kVector;
  return 8 * beyond < size ? size - beyond : size;
}

// Replaces the blocks of least time for a kernel with resident keys. Keys stream in whole vectors,
// and the resident keys may shrink down to one to make room.
Blocks wider(const Blocks& fewest, const Problem& problem) {
  constexpr Index kKeys = 96;
  Blocks blocks = fewest;
  blocks.set("Bc", std::max(fewest["Bc"], std::min(problem.shape.m, kKeys)));
  blocks.set(kResident, 1);
  return blocks;
}

// A path from the blocks of the fewest words to the blocks of least time. Each phase of a kernel
// has its own place on the path, from 0 to 1.
class Way {
 public:
  Way(const Counted& counted, const Blocks& fewest, const Blocks& fastest)
      : counted_(counted), fewest_(fewest) {
    for (const auto& [name, size] : fewest) {
      const bool moves = is_of_scores(name) || stays(name);
      const Index fast = fastest.contains(name) ? fastest[name] : name == kKept ? 1 : size;
      if (!moves || fast == size) {
        continue;
      }
      steps_.push_back({name, size, fast});
      if (std::ranges::find(phases_, phase_of(name)) == phases_.end()) {
        phases_.push_back(phase_of(name));
      }
    }
    // The phase with the narrowest blocks comes first, because it gains the most.
    std::ranges::stable_sort(phases_, {}, [&](std::string_view phase) {
      Index narrowest = std::numeric_limits<Index>::max();
      for (const Step& step : steps_) {
        narrowest = phase_of(step.name) == phase ? std::min(narrowest, step.few) : narrowest;
      }
      return narrowest;
    });
  }

  // Returns the blocks farthest along the path that move at most `most` words. The first phase
  // takes a share of the additional words, and the others advance as far as the remaining words
  // allow. Of several shares, the fastest is kept. For each block, the resident rows pass from the
  // cache to the registers. This takes about as long as 8 more keys.
  [[nodiscard]] Blocks farthest(double most) const {
    if (phases_.size() < 2) {
      return farthest(most, 1);
    }
    std::vector<Blocks> tried;
    for (const double share : {0.25, 0.5, 0.75}) {
      tried.push_back(farthest(most, share));
    }
    return *std::ranges::min_element(tried, {}, [](const Blocks& blocks) {
      constexpr Index kPassing = 8;
      return time_of_tiles(blocks, kPassing);
    });
  }

 private:
  struct Step {
    std::string_view name;
    Index few, fast;
  };

  static constexpr double kNotBegun = -1;

  // Returns the blocks farthest along the path if the first phase takes this share.
  [[nodiscard]] Blocks farthest(double most, double share) const {
    std::vector<double> places(phases_.size(), kNotBegun);
    Blocks best = fewest_;
    const double now = counted_.words(best);
    double limit = now + share * (most - now);
    const auto go = [&](double& place, double to) {
      const double from = std::exchange(place, to);
      Blocks blocks = at(places);
      if (!counted_.fits(blocks) || counted_.words(blocks) > limit || !is_wider(blocks, best)) {
        place = from;
        return false;
      }
      best = std::move(blocks);
      return true;
    };
    const auto go_far = [&](double& place) {
      constexpr int kHalvings = 5;
      if (place == 1 || go(place, 1)) {
        return;
      }
      go(place, std::max(place, 0.0));
      double reached = std::max(place, 0.0), beyond = 1;
      for (int i = 0; i < kHalvings; ++i) {
        const double middle = (reached + beyond) / 2;
        (go(place, middle) ? reached : beyond) = middle;
      }
    };
    if (!places.empty()) {
      go_far(places.front());
    }
    limit = most;
    std::ranges::for_each(places, go_far);
    return best == fewest_ ? narrowed() : best;
  }

  // Returns the blocks of the fewest words, where sizes that shrink for less time do so as far as
  // the words allow.
  [[nodiscard]] Blocks narrowed() const {
    Blocks blocks = fewest_;
    for (const Step& step : steps_) {
      if (step.few > step.fast) {
        counted_.shrink(blocks, step.name, step.fast);
      }
    }
    return blocks;
  }

  [[nodiscard]] bool is_wider(const Blocks& blocks, const Blocks& than) const {
    return std::ranges::any_of(steps_, [&](const Step& step) {
      return step.few < step.fast && blocks[step.name] > than[step.name];
    });
  }

  [[nodiscard]] Blocks at(const std::vector<double>& places) const {
    Blocks blocks = fewest_;
    std::vector<Step> begun;
    for (const Step& step : steps_) {
      const auto phase = static_cast<std::size_t>(std::ranges::find(phases_, phase_of(step.name)) -
                                                  phases_.begin());
      if (places[phase] == kNotBegun) {
        continue;
      }
      begun.push_back(step);
      const double few = std::log(static_cast<double>(step.few));
      const double fast = std::log(static_cast<double>(step.fast));
      const auto size = static_cast<Index>(std::exp(std::lerp(few, fast, places[phase])) + 0.5);
      blocks.set(step.name, size);
    }
    // A size that shrinks is made as large as fits beside the sizes that grow, and then as small as
    // the same number of words allows.
    for (const Step& step : begun) {
      if (step.few > step.fast) {
        blocks.set(step.name, step.fast);
        counted_.grow(blocks, step.name, step.fast, step.few);
        counted_.shrink(blocks, step.name, step.fast);
      }
    }
    for (const Step& step : begun) {
      if (step.few < step.fast) {
        counted_.grow(blocks, step.name, blocks[step.name], step.fast);
        blocks.set(step.name, in_vectors(blocks[step.name]));
      }
    }
    return blocks;
  }

  const Counted& counted_;
  const Blocks& fewest_;
  std::vector<Step> steps_ = {};
  std::vector<std::string_view> phases_ = {};
};

}  // namespace

Blocks fastest_within(const Kernel& kernel, const Problem& problem, const Memory& memory,
                      double share) {
  Memory of_any_sizes = memory;
  of_any_sizes.multiple = 1;
  const Blocks fewest = kernel.blocks(problem, of_any_sizes, Objective::words);
  const Blocks fastest = kernel.blocks(problem, of_any_sizes, Objective::time);
  if (fewest == fastest) {
    return fewest;
  }
  if (!memory.inner.empty()) {
    const auto words = [&](const Blocks& blocks) {
      return weighted_words(kernel.plan(problem, memory, blocks), memory);
    };
    return words(fastest) <= share * words(fewest) ? fastest : fewest;
  }
  const Counted counted(kernel, problem, memory.M);
  if (!counted.fits(fewest)) {
    return fewest;
  }
  const double most = share * counted.words(fewest);
  return counted.fits(fastest) && counted.words(fastest) <= most
             ? fastest
             : Way(counted, fewest, fewest.contains(kResident) ? wider(fewest, problem) : fastest)
                   .farthest(most);
}

double narrowness(const Blocks& blocks) {
  return time_of_tiles(blocks, 0);
}

Blocks in_multiples(const Kernel& kernel, const Problem& problem, const Memory& memory,
                    const Blocks& blocks) {
  constexpr Index kRoomForAll = Index{1} << 50;
  const Memory smallest{1, memory.prefetch};
  const Counted counted(kernel, problem, memory.M);
  const Blocks whole = kernel.blocks(problem, kRoomForAll, Objective::words);
  const Shape shape = problem.live_part().shape;
  const auto rounded = [&](std::string_view name, Index size) {
    const Index most = whole.contains(name) ? whole[name] : kRoomForAll;
    const bool is_extent =
        most == shape.n || most == shape.m || most == shape.d || most == shape.dv;
    return most < memory.multiple || (size == most && is_extent)
               ? most
               : std::max(size / memory.multiple, Index{1}) * memory.multiple;
  };
  // Returns the blocks with each size, and each number of resident keys or columns, multiplied by
  // `part`.
  const auto shrunk = [&](const Blocks& of, double part) {
    Blocks smaller = of;
    for (const auto& [name, size] : of) {
      const auto less = static_cast<Index>(static_cast<double>(size) * part);
      if (is_size(name)) {
        smaller.set(name, rounded(name, less));
      } else if (stays(name)) {
        smaller.set(name, std::max(less, Index{1}));
      }
    }
    return smaller;
  };
  constexpr double kParts = 256;
  const auto fitting = [&](Index parts) {
    return counted.fits(shrunk(blocks, static_cast<double>(parts) / kParts));
  };
  const Index parts = largest(static_cast<Index>(kParts), fitting);
  Blocks best = fitting(parts) ? shrunk(blocks, static_cast<double>(parts) / kParts)
                               : shrunk(kernel.blocks(problem, smallest, Objective::words), 0);
  if (!counted.fits(best)) {
    return best;
  }
  for (const auto& [name, size] : Blocks(best)) {
    if (blocks.contains(name) && is_size(name)) {
      counted.grow(best, name, size, rounded(name, blocks[name]), memory.multiple);
    } else if (blocks.contains(name) && stays(name)) {
      counted.grow(best, name, size, blocks[name]);
    }
  }
  return best;
}

}  // namespace redblue
