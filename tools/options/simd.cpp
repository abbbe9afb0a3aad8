#include "tools/options/simd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arithmetic/simd.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

constexpr const char* kSimdVariable = "REDBLUE_SIMD";

}  // namespace

SimdOption::SimdOption(CLI::App& app)
    : simd_(app, "--simd", "vector instructions to use (see `redblue info`; default: the best)",
            "NAME") {}

std::optional<std::string> SimdOption::apply() const {
  auto given = simd_.get();
  if (const char* named = variable(kSimdVariable); !given && named != nullptr && *named != '\0') {
    given = {named, kSimdVariable};
  }
  if (!given) {
    return std::nullopt;
  }
  if (!use_simd_target(given->text)) {
    throw UsageError(fmt::format("{} '{}': this machine and this binary have {}", given->from,
                                 given->text, fmt::join(simd_targets(), ", ")));
  }
  return given->text;
}

}  // namespace redblue
