// Nests as text. A nest that can be read is counted, for a few small sizes and under a mask. Its
// lines have the same words as its phases. Sizes that do not fit are refused. Its `takes` lines
// mean the same when they are read again from their text.

#include "kernels/nest.hpp"

#include <algorithm>
#include <optional>
#include <string>

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

// The text of `takes` is its comparison, so it can be read again.
void demand_same_sizes(const TextNest& nest) {
  std::string text = "kernel k\nmatrix Q[n,d] -> O[n,d]\n";
  for (const NestTakes& takes : nest.takes) {
    text += "takes " + takes.text + "\n";
  }
  const TextNest again = parse_nest(text + "read Q[n,d] as O\nwrite O[n,d]\n", "again.nest");
  demand(again.takes.size() == nest.takes.size(), "the text of 'takes' has other comparisons");
  for (const Index size : {1, 2, 64, 1000}) {
    const NestExtents extents{.n = size, .m = size + 1, .d = 3, .dv = 2, .group = 2};
    const auto untaken_of = [&](const TextNest& its) -> std::optional<std::string> {
      return read_or_refused<ShapeMismatch, CountOverflow>("", [&] {
        const NestTakes* found = untaken(its, extents);
        return found == nullptr ? std::string() : found->text;
      });
    };
    demand(untaken_of(again) == untaken_of(nest), "the text of 'takes' has another comparison");
  }
}

}  // namespace

void nest(std::string_view input) {
  const auto read =
      read_or_refused<NestError>("a.nest:", [&] { return parse_nest(input, "a.nest"); });
  if (!read) {
    return;
  }
  demand_same_sizes(*read);
  if (depth_of(read->statements) > kMostLoops) {
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
