// Nests as text. A nest that can be read is counted, for a few small sizes and under a mask. Its
// lines have the same words as its phases. Sizes that do not fit are refused.

#include "kernels/nest.hpp"

#include <algorithm>

#include "kernels/nests/count.hpp"
#include "kernels/nests/text_nest.hpp"
#include "memsim/errors.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

// A count takes a time that is exponential in the loops inside each other.
constexpr int kMostLoops = 6;

int depth_of(const std::vector<NestStatement>& list) {
  int most = 0;
  for (const NestStatement& statement : list) {
    most = std::max(
        most, depth_of(statement.body) + (statement.kind == NestStatement::Kind::loop ? 1 : 0));
  }
  return most;
}

void demand_same_words(const TextNest& nest, const NestSizes& sizes) {
  const auto counted = read_or_refused<NestError, ShapeMismatch, CountOverflow>(
      "", [&] { return total(count(nest, sizes)); });
  if (!counted) {
    return;
  }
  Words reads, writes;
  for (const NestLine& line : lines(nest, sizes)) {
    reads += line.reads;
    writes += line.writes;
  }
  demand(reads == counted->reads && writes == counted->writes,
         "the lines move other words than the phases");
}

}  // namespace

void nest(std::string_view input) {
  const auto read =
      read_or_refused<NestError>("a.nest:", [&] { return parse_nest(input, "a.nest"); });
  if (!read || depth_of(read->statements) > kMostLoops) {
    return;
  }
  for (const bool masked : {false, true}) {
    for (const Index size : {0, 1, 2, 7}) {
      NestSizes sizes;
      sizes.extents = {.n = 4, .m = 5, .d = 3, .dv = 2, .M = 50};
      if (masked) {
        sizes.mask = Mask::causal(sizes.extents.n, sizes.extents.m);
      }
      for (const NestBlock& block : read->blocks) {
        if (!block.size) {
          sizes.blocks.add(read->symbols[block.symbol].name, size);
        }
      }
      demand_same_words(*read, sizes);
    }
  }
}

}  // namespace redblue::fuzz
