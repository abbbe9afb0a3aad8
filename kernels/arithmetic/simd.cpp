#include "kernels/arithmetic/simd.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/arithmetic/simd_targets.hpp"
// simd_targets.hpp comes first. It disables sets, so that targets.h lists only the sets that the
// arithmetic has.
#include <hwy/targets.h>

namespace redblue {
namespace {

// The sets of the processor; a better set has a lower bit. The processor is queried once, before a
// caller selects a set.
const std::vector<std::int64_t>& targets() {
  static const std::vector<std::int64_t> all = [] {
    std::vector<std::int64_t> found;
    const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
    for (std::int64_t rest = usable; rest != 0; rest &= rest - 1) {
      found.push_back(rest & -rest);
    }
    return found;
  }();
  return all;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::string simd_target() {
  const std::vector<std::int64_t>& known = targets();
  const std::int64_t chosen = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(chosen == 0 ? known.back() : chosen & -chosen);
}

bool use_simd_target(std::string_view name) {
  const auto wanted = std::ranges::find_if(
      targets(), [&](std::int64_t target) { return hwy::TargetName(target) == name; });
  if (wanted == targets().end()) {
    return false;
  }
  hwy::SetSupportedTargetsForTest(*wanted);
  hwy::GetChosenTarget().Update(*wanted);
  return true;
}

}  // namespace redblue
