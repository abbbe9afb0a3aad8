// Numbers that a person types: sizes, M, bytes, scales, seeds, tolerances of a gate.

#include "runtime/text/sizes.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/gate/comparison.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void sizes(std::string_view input) {
  const auto typed = [&](auto parse) {
    return read_or_refused<UsageError>("--n", [&] { return parse(input, "--n"); });
  };
  if (const auto size = typed(parse_size)) {
    demand(*size > 0 && parse_size(std::to_string(*size), "--n") == *size, "another size");
  }
  const auto parse_M = [](std::string_view text, std::string_view what) {
    return parse_fast_memory(text, what);
  };
  if (const auto M = typed(parse_M)) {
    if (const Index* const words = std::get_if<Index>(&*M)) {
      demand(
          *words > 0 && std::get<Index>(parse_fast_memory(std::to_string(*words), "--M")) == *words,
          "another M");
    } else if (const CachePart* const part = std::get_if<CachePart>(&*M)) {
      demand(part->share > 0 && part->share <= 1, "no share of a cache");
      const FastMemory again =
          parse_fast_memory(fmt::format("{}*{}", to_string(part->level), part->share), "--M");
      demand(std::get<CachePart>(again) == *part, "another part of a cache");
    }
  }
  const auto parse_floats = [](std::string_view text, std::string_view what) {
    return parse_bytes(text, what);
  };
  if (const auto bytes = typed(parse_floats)) {
    demand(
        *bytes > 0 && *bytes % 4 == 0 && parse_bytes(fmt::format("{}B", *bytes), "--n") == *bytes,
        "other bytes");
  }
  if (const auto scale = typed(parse_scale)) {
    demand(std::isfinite(*scale) && *scale > 0 &&
               parse_scale(fmt::format("{}", *scale), "--n") == *scale,
           "another scale");
  }
  if (const auto seed = typed(parse_seed)) {
    demand(parse_seed(std::to_string(*seed), "--n") == *seed, "another seed");
  }
  const std::string text(input);
  const auto tolerance =
      read_or_refused<std::invalid_argument>("METRIC=WORDS", [&] { return parse_tolerance(text); });
  if (tolerance) {
    demand(!tolerance->metric.empty() && tolerance->words >= 0 &&
               (!tolerance->percent ||
                (std::isfinite(*tolerance->percent) && *tolerance->percent >= 0)),
           "no tolerance");
  }
}

}  // namespace redblue::fuzz
