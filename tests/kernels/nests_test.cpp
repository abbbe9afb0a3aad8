// count() and fit() of random nests, which are given as text, against an interpreter that runs each
// pass of each loop (tests/support/nest_interpreter.hpp), and an exhaustive search over blocks. And
// walk() on a machine against both.

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/nests/count.hpp"
#include "kernels/nests/fit.hpp"
#include "kernels/nests/text_nest.hpp"
#include "kernels/nests/walk.hpp"
#include "memsim/machine.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/nest_interpreter.hpp"
#include "tests/support/random_masks.hpp"
#include "tests/support/random_nests.hpp"

namespace redblue {
namespace {

// A nest with its sizes. `live`: the pairs of sizes.mask, none for full().
struct NestCase {
  std::string text;
  NestSizes sizes;
  std::optional<PairTable> live = {};
  Index multiple = 1;  // of the blocks that fit() chooses

  [[nodiscard]] const PairTable* pairs() const { return live ? &*live : nullptr; }
};

std::string shown(const InterpretedPhase& phase) {
  return "reads " + std::to_string(phase.reads) + ", writes " + std::to_string(phase.writes) +
         ", peak " + std::to_string(phase.peak) + ", flops " + std::to_string(phase.flops);
}

std::string shown(const NestCase& of) {
  const auto& [extents, blocks, mask, sum_words, softmax] = of.sizes;
  std::string text = of.text + "n=" + std::to_string(extents.n) +
                     " m=" + std::to_string(extents.m) + " d=" + std::to_string(extents.d) +
                     " dv=" + std::to_string(extents.dv) + " M=" + std::to_string(extents.M) +
                     " sum_words=" + std::to_string(sum_words) +
                     " softmax=" + std::to_string(softmax ? 1 : 0);
  text += of.multiple > 1 ? " multiple=" + std::to_string(of.multiple) : "";
  for (const auto& [name, size] : blocks) {
    text += " " + name + "=" + std::to_string(size);
  }
  for (Index i = 0; of.live && i < of.live->n; ++i) {
    text += i == 0 ? "\n" : "";
    for (Index j = 0; j < of.live->m; ++j) {
      text += of.live->at(i, j) ? "x" : ".";
    }
    text += "\n";
  }
  return text + "\n";
}

InterpretedPhases counted(const TextNest& nest, const NestSizes& sizes) {
  InterpretedPhases found;
  for (const PhaseCost& cost : count(nest, sizes)) {
    const InterpretedPhase phase{cost.reads.value(), cost.writes.value(), cost.peak.value(),
                                 cost.flops.value()};
    if (phase != InterpretedPhase()) {
      found[cost.path] = phase;
    }
  }
  return found;
}

// Whether every block has a size.
bool has_sizes(const TextNest& nest, const NestSizes& sizes) {
  return std::ranges::all_of(nest.blocks, [&](const NestBlock& block) {
    return block.size || sizes.blocks.contains(nest.symbols[block.symbol].name);
  });
}

// Returns what count() says otherwise than the interpreter. Empty if they agree, or the case is no
// nest, or takes too long.
std::string difference(const NestCase& of) {
  InterpretedPhases runs, counts;
  std::vector<std::string> phases;
  try {
    const TextNest nest = parse_nest(of.text, "random.nest");
    phases = nest.phases;
    if (!has_sizes(nest, of.sizes)) {
      return "";
    }
    const std::optional<InterpretedPhases> ran = interpret(nest, of.sizes, of.pairs(), 300'000);
    if (!ran) {
      return "";
    }
    runs = *ran;
    try {
      counts = counted(nest, of.sizes);
    } catch (const NestError& error) {
      return std::string("count() refuses it: ") + error.what() + "\n";
    }
  } catch (const NestError&) {
    return "";
  }
  std::string text;
  if (peak_of(runs) != peak_of(counts)) {
    text += "the peak is " + std::to_string(peak_of(runs)) + "; count() says " +
            std::to_string(peak_of(counts)) + "\n";
  }
  // Both may leave out a phase that only holds words: statements outside all phases, or a phase
  // with phases inside.
  std::erase_if(runs, [&](const auto& run) {
    const auto& [path, phase] = run;
    const bool has_inner = std::ranges::any_of(
        phases,
        [&, outer = path + "/"](const std::string& other) { return other.starts_with(outer); });
    return (path == phases.front() || has_inner) && !counts.contains(path) &&
           phase == InterpretedPhase{.peak = phase.peak};
  });
  for (const auto& [path, phase] : runs) {
    if (counts[path] != phase) {
      text += "phase '" + path + "' runs with " + shown(phase) + "; count() says " +
              shown(counts[path]) + "\n";
    }
    counts.erase(path);
  }
  for (const auto& [path, phase] : counts) {
    if (phase != InterpretedPhase()) {
      text += "phase '" + path + "' does not run; count() says " + shown(phase) + "\n";
    }
  }
  return text;
}

// Whether a tile is written as sums and was made as operands, or the reverse. Its words then change
// their width, which a machine cannot do.
bool mixes_sums(const TextNest& nest, const std::vector<NestStatement>& list) {
  const auto makes = [](const std::vector<NestStatement>& in, const TextTile& tile,
                        const auto& self) -> bool {
    return std::ranges::any_of(in, [&](const NestStatement& statement) {
      const bool is_maker = statement.kind == NestStatement::Kind::read ||
                            statement.kind == NestStatement::Kind::make;
      return self(statement.body, tile, self) ||
             (is_maker && std::ranges::any_of(statement.tiles, [&](const TextTile& made) {
                return made.name == tile.name && made.sum != tile.sum;
              }));
    });
  };
  return std::ranges::any_of(list, [&](const NestStatement& statement) {
    return mixes_sums(nest, statement.body) ||
           (statement.kind == NestStatement::Kind::write &&
            std::ranges::any_of(statement.tiles, [&](const TextTile& tile) {
              return makes(nest.statements, tile, makes);
            }));
  });
}

// Returns what walk() on a machine does otherwise than count() says. Empty if they agree, or the
// case is no nest, or moves many words.
std::string difference_of_walk(const NestCase& of) {
  InterpretedPhases counts, walks;
  std::string outside;
  Index peak = 0;
  try {
    const TextNest nest = parse_nest(of.text, "random.nest");
    if (!has_sizes(nest, of.sizes)) {
      return "";
    }
    bool overran = false;
    const std::optional<InterpretedPhases> ran =
        interpret(nest, of.sizes, of.pairs(), 300'000, &overran);
    if (!ran || overran || mixes_sums(nest, nest.statements) || words_of(*ran) > 10'000'000) {
      return "";
    }
    counts = counted(nest, of.sizes);
    Machine machine(2 * peak_of(*ran) + 1000);
    machine.weigh(Holds::sums, of.sizes.sum_words);
    walk(machine, nest, of.sizes, {});
    for (const PhaseCounts& phase : leaves(machine.phases())) {
      const InterpretedPhase walked{phase.io.reads, phase.io.writes, phase.peak,
                                    phase.operations.flops};
      walks[phase.path.empty() ? nest.phases.front() : phase.path] = walked;
    }
    peak = total(machine.phases()).peak;
    outside = nest.phases.front();
  } catch (const NestError&) {
    return "";
  } catch (const std::exception& error) {
    return std::string("walk() fails: ") + error.what() + "\n";
  }
  std::string text;
  if (peak != peak_of(counts)) {
    text += "the peak of the machine is " + std::to_string(peak) + "; count() says " +
            std::to_string(peak_of(counts)) + "\n";
  }
  for (const auto& [path, phase] : walks) {
    if (path == outside && !counts.contains(path) &&
        phase == InterpretedPhase{.peak = phase.peak}) {
      continue;
    }
    if (counts[path] != phase) {
      text += "phase '" + path + "' walks with " + shown(phase) + "; count() says " +
              shown(counts[path]) + "\n";
    }
    counts.erase(path);
  }
  for (const auto& [path, phase] : counts) {  // only a peak, which leaves() may leave out
    if (phase.reads + phase.writes + phase.flops != 0) {
      text += "phase '" + path + "' does not walk; count() says " + shown(phase) + "\n";
    }
  }
  return text;
}

// The sizes up to its extent of each block that has none, in all combinations: the extent, its
// smaller multiples, and 0 for a block that no loop has as its step.
std::vector<Blocks> all_blocks(const TextNest& nest, const NestExtents& extents, Index multiple) {
  std::vector<Blocks> found = {Blocks()};
  for (const NestBlock& block : nest.blocks) {
    std::vector<Blocks> longer;
    for (const Blocks& blocks : found) {
      const Index extent = extents.values()[block.of];
      for (Index size = !block.is_step ? 0 : multiple; size < extent + multiple; size += multiple) {
        longer.push_back(blocks);
        longer.back().add(nest.symbols[block.symbol].name, std::min(size, extent));
      }
    }
    found = std::move(longer);
  }
  return found;
}

struct Choice {
  Blocks blocks;
  Index words, peak;
};
// Returns the words that each choice of blocks moves. Empty if some choice takes too many steps.
std::vector<Choice> choices_of(const TextNest& nest, const NestCase& of) {
  std::vector<Choice> choices;
  NestSizes sizes = of.sizes;
  for (const Blocks& blocks : all_blocks(nest, sizes.extents, of.multiple)) {
    sizes.blocks = blocks;
    const auto runs = interpret(nest, sizes, of.pairs(), 20'000);
    if (!runs) {
      return {};
    }
    choices.push_back({blocks, words_of(*runs), peak_of(*runs)});
  }
  return choices;
}

std::string shown(const Choice& choice) {
  std::string text =
      std::to_string(choice.words) + " words, a peak of " + std::to_string(choice.peak);
  for (const auto& [name, size] : choice.blocks) {
    text += " " + name + "=" + std::to_string(size);
  }
  return text;
}

// Returns the choice of fit() if a search of all blocks finds a better one. Empty if there is none,
// or if no blocks fit.
std::string difference_of_fit(const NestCase& of) {
  try {
    const TextNest nest = parse_nest(of.text, "random.nest");
    NestSizes sizes = of.sizes;
    sizes.blocks = Blocks();
    std::vector<Choice> choices = choices_of(nest, of);
    std::erase_if(choices, [&](const Choice& other) { return other.peak > sizes.extents.M; });
    if (choices.empty()) {
      return "";
    }
    const Choice best = *std::ranges::min_element(choices, {}, &Choice::words);
    sizes.blocks = fit(nest, sizes, of.multiple);
    const auto runs = interpret(nest, sizes, of.pairs(), 1'000'000);
    const bool is_choice =
        std::ranges::find(choices, sizes.blocks, &Choice::blocks) != choices.end();
    if (runs && words_of(*runs) == best.words && is_choice) {
      return "";
    }
    const Choice chosen = {sizes.blocks, runs ? words_of(*runs) : -1, runs ? peak_of(*runs) : -1};
    return "fit() chooses " + shown(chosen) + "; the best are " + shown(best) + "\n";
  } catch (const NestError&) {
    return "";
  }
}

// -------------------------------------------------------------------------------- smaller cases

std::size_t indent_of(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Returns the case without some pairs' queries or keys. Requires: a mask.
NestCase without(const NestCase& of, Index query, Index key) {
  const PairTable& all = *of.live;
  const Index n = all.n - (query < 0 ? 0 : 1), m = all.m - (key < 0 ? 0 : 1);
  NestCase smaller = of;
  smaller.live = PairTable(n, m, [&](Index i, Index j) {
    return all.at(query >= 0 && i >= query ? i + 1 : i, key >= 0 && j >= key ? j + 1 : j);
  });
  BlockPattern pattern{n, m, 1, 1, {0}, {}};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (smaller.live->at(i, j)) {
        pattern.columns.push_back(j);
      }
    }
    pattern.offsets.push_back(pattern.stored());
  }
  smaller.sizes.mask = Mask::pattern(pattern);
  smaller.sizes.extents.n = n;
  smaller.sizes.extents.m = m;
  return smaller;
}
bool is_sound(const NestCase& of) {  // all queries and keys live, and not all pairs
  return !of.live || (of.live->n > 0 && of.live->m > 0 && !of.sizes.mask.full() &&
                      of.sizes.mask.compact() == of.sizes.mask);
}

std::vector<NestCase> smaller_cases(const NestCase& of) {
  std::vector<NestCase> found;
  const std::vector<std::string> lines = lines_of(of.text);
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::size_t end = at + 1;
    while (end < lines.size() && indent_of(lines[end]) > indent_of(lines[at])) {
      ++end;
    }
    NestCase without_all = of, without_head = of;
    without_all.text.clear();
    without_head.text.clear();
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const bool in_body = at < k && k < end;
      without_all.text += k == at || in_body ? "" : lines[k] + "\n";
      without_head.text +=
          k == at ? ""
                  : (in_body ? lines[k].substr(indent_of(lines[at + 1]) - indent_of(lines[at]))
                             : lines[k]) +
                        "\n";
    }
    found.push_back(without_all);
    if (end > at + 1) {
      found.push_back(without_head);
    }
  }
  for (const auto extent :
       {&NestExtents::n, &NestExtents::m, &NestExtents::d, &NestExtents::dv, &NestExtents::M}) {
    const bool of_mask = extent == &NestExtents::n || extent == &NestExtents::m;
    if (of.sizes.extents.*extent > 1 && !(of.live && of_mask)) {
      for (const Index size :
           {Index{1}, of.sizes.extents.*extent / 2, of.sizes.extents.*extent - 1}) {
        found.push_back(of);
        found.back().sizes.extents.*extent = size;
      }
    }
  }
  for (const auto& [name, size] : of.sizes.blocks) {
    for (const Index smaller : {Index{0}, Index{1}, size / 2, size - 1}) {
      if (0 <= smaller && smaller < size) {
        found.push_back(of);
        found.back().sizes.blocks.set(name, smaller);
      }
    }
  }
  if (of.sizes.sum_words > 1) {
    found.push_back(of);
    found.back().sizes.sum_words = 1;
  }
  if (of.live) {
    found.push_back(of);
    found.back().live.reset();
    found.back().sizes.mask = Mask();
    for (Index i = 0; i < of.live->n && of.live->n > 1; ++i) {
      found.push_back(without(of, i, -1));
    }
    for (Index j = 0; j < of.live->m && of.live->m > 1; ++j) {
      found.push_back(without(of, -1, j));
    }
  }
  return found;
}

// Returns the smallest case with the same fault that 3000 tries find.
NestCase smallest(NestCase of, std::string (*fault)(const NestCase&) = difference) {
  int tries = 3000;
  for (bool again = true; again;) {
    again = false;
    for (const NestCase& smaller : smaller_cases(of)) {
      if (--tries > 0 && is_sound(smaller) && !fault(smaller).empty()) {
        of = smaller;
        again = true;
        break;
      }
    }
  }
  return of;
}

// --------------------------------------------------------------------------------- random cases

// Draws nests until one is parsed, and counts the others.
struct DrawnNest {
  std::string text;
  TextNest nest;
};
DrawnNest draw_nest(RandomNests& random, int most_loops, Index most_blocks, bool fixed,
                    std::int64_t& refused) {
  while (true) {
    const std::string text = random.nest(most_loops, most_blocks, fixed);
    try {
      return {text, parse_nest(text, "random.nest")};
    } catch (const NestError&) {
      ++refused;
    }
  }
}

// Returns a mask with all queries and keys live, and some pairs dead.
TabledMask draw_live_mask(std::uint64_t seed, Index n, Index m) {
  RandomMasks masks(static_cast<unsigned>(seed));
  while (true) {
    const TabledMask drawn = masks.any(0, 2) == 0 ? masks.expression(n, m) : masks.primitive(n, m);
    const bool none = !drawn.mask.full() && drawn.mask.live_queries().empty();
    const Mask compact = drawn.mask.full() || none ? Mask() : drawn.mask.compact();
    if (compact.full()) {
      n += n < 40 ? 1 : 0;  // of 1 x 1 pairs, all live ones meet
      m += m < 40 ? 1 : 0;
      continue;
    }
    std::vector<Index> queries, keys;
    for (Index i = 0; i < n; ++i) {
      if (!drawn.table.keys({i, i + 1}).empty()) {
        queries.push_back(i);
      }
    }
    for (Index j = 0; j < m; ++j) {
      if (drawn.table.meets({0, n}, j)) {
        keys.push_back(j);
      }
    }
    return {compact, PairTable(std::ssize(queries), std::ssize(keys), [&](Index i, Index j) {
              return drawn.table.at(queries[static_cast<std::size_t>(i)],
                                    keys[static_cast<std::size_t>(j)]);
            })};
  }
}

// Draws extents and a mask up to `most`, and sizes of the blocks that have none, and of some
// others.
NestCase draw_sizes(RandomNests& random, const DrawnNest& drawn, Index most, bool masked) {
  NestCase found{drawn.text, {}};
  NestExtents& extents = found.sizes.extents;
  const auto draw = [&](Index largest) {
    return random.any(1, random.chance(50) ? largest : std::max<Index>(1, largest / 4));
  };
  extents.n = draw(most);
  extents.m = random.chance(20) ? extents.n : draw(most);
  extents.d = draw(std::min<Index>(most, 12));
  extents.dv = random.chance(50) ? extents.d : draw(std::min<Index>(most, 12));
  extents.M = random.any(1, 300);
  if (masked) {
    const TabledMask mask =
        draw_live_mask(static_cast<std::uint64_t>(random.any(0, 1LL << 30)), extents.n, extents.m);
    found.sizes.mask = mask.mask;
    found.live = mask.table;
    extents.n = mask.table.n;
    extents.m = mask.table.m;
  }
  found.sizes.sum_words = random.any(1, 3);
  found.sizes.softmax = random.chance(60);
  for (const NestBlock& block : drawn.nest.blocks) {
    if (!block.size || random.chance(20)) {
      found.sizes.blocks.add(drawn.nest.symbols[block.symbol].name,
                             !block.is_step && random.chance(30) ? 0
                             : random.chance(15)                 ? random.any(1, 50)
                                                                 : draw(most / 2 + 1));
    }
  }
  return found;
}

bool moves_in_part(const std::vector<NestStatement>& list) {
  return std::ranges::any_of(list, [](const NestStatement& statement) {
    return std::ranges::any_of(statement.targets, &TextTile::in_part) ||
           moves_in_part(statement.body);
  });
}

TEST(TextNests, CountAsRunPassByPass) {
  const std::int64_t all = cases(kUsualCases);
  std::int64_t refused = 0, accepted = 0, masked = 0, phases = 0;
  std::int64_t in_part = 0, met = 0;  // nests with tiles that move in part, and with met(I)
  int differences = 0;
  Index words = 0;
  for (std::int64_t k = 0; k < all && differences < 3; ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomNests random(seed_of_case(k));
    // A nest with too many passes for the interpreter takes smaller sizes, or is replaced.
    NestCase drawn;
    std::optional<InterpretedPhases> runs;
    for (int tries = 0; !runs; ++tries) {
      const DrawnNest nest = draw_nest(random, 4, 4, true, refused);
      ++accepted;
      for (const Index most : {40, 40, 20, 10}) {
        drawn = draw_sizes(random, nest, most, (k + tries) % 2 == 0);
        runs = interpret(nest.nest, drawn.sizes, drawn.pairs(), 30'000);
        if (runs) {
          break;
        }
      }
    }
    masked += drawn.live ? 1 : 0;
    const TextNest nest = parse_nest(drawn.text, "random.nest");
    in_part += drawn.live && moves_in_part(nest.statements) ? 1 : 0;
    met += drawn.live && drawn.text.find("met(") != std::string::npos ? 1 : 0;
    phases += std::ssize(*runs);
    words += words_of(*runs);
    const std::string found = difference(drawn);
    if (!found.empty()) {
      ++differences;
      const NestCase least = smallest(drawn);
      ADD_FAILURE() << found << shown(drawn) << "The smallest nest:\n"
                    << shown(least) << difference(least);
      continue;
    }
    const std::string walked = difference_of_walk(drawn);
    if (!walked.empty()) {
      ++differences;
      const NestCase least = smallest(drawn, difference_of_walk);
      ADD_FAILURE() << walked << shown(drawn) << "The smallest nest:\n"
                    << shown(least) << difference_of_walk(least);
    }
  }
  if (differences == 0) {
    EXPECT_GE(masked, all / 3);
    EXPECT_GE(in_part, all / 50);
    EXPECT_GE(met, all / 50);
    EXPECT_LE(refused, accepted);  // the generator is mostly accepted
  }
  std::cout << all << " nests (" << masked << " under masks, " << refused << " refused, "
            << accepted - all << " with too many passes, " << in_part << " with tiles in part, "
            << met << " with met()), " << phases << " phases, " << words
            << " words each way of counting, " << differences << " differences\n";
}

// Several loops visit the rows that one block meets, or pieces of them. Blocks of one size then
// differ in more than one loop. And a phase that only drops a tile holds the others.
TEST(TextNests, CountSeveralLoopsMetByOneBlock) {
  const std::string head =
      "kernel few\nmatrix Q[n,d] b[m] -> y[n]\nread Q[n,d] b[m]\ndrop Q b\nnew y[n]\nwrite y[n]\n";
  for (const std::string loops :
       {"for J in m by 1\n for I in n by 1 met by J\n  for P in n by 1 met by J\n   read Q[P,d]\n",
        "for J in m by 2\n for I in n by 3\n  for P in I by 2 met by J\n   read Q[P,d]\n",
        "for J in m by 2\n for I in n by 3\n  for P in I by 2 met by J\n"
        "   read Q[I,d] unless last P\n",
        "for J in m by 4\n for I in n by 1 met by J\n  for P in n by 2 met by J\n"
        "   for C in m by 1 met by I\n    read b[C]\n",
        "for I in n by 2\n read Q[I,d]\n new s[I]\n phase end\n  drop s\n"}) {
    NestCase of{head + loops, {}};
    of.sizes.extents = {.n = 6, .m = 6, .d = 2, .dv = 2};
    EXPECT_EQ(difference(of), "") << of.text;
    of.sizes.mask = Mask::causal(6, 6);
    of.live = PairTable(6, 6, [](Index i, Index j) { return j <= i; });
    EXPECT_EQ(difference(of), "") << of.text << " under a mask";
  }
}

// The smallest forms of random nests that were counted wrongly before: sizes that depend on a loop
// between two others, cases that do not happen, phases around others, and slices of loops that a
// block meets.
TEST(TextNests, CountAsOnceTheyDidNot) {
  const std::string head = "kernel few\nmatrix Q[n,d] -> y[n]\ntemp t[each P,n]\n";
  const std::string tail = "read Q[n,d]\nnew y[n]\nwrite y[n]\n";
  const std::string slices = "for P in m by 2\n new c[n]\n write c[n] as t[each P,n]\n drop c\n";
  for (const std::string lines :
       {"for J in n by 1\n for I in d by 1\n  for X in m from I by 1 met by J\n"
        "   new s[X] first J\n   flops X\n",
        "for R in n by 2\n for C in m from if(R >= 2, 1, 0) by 1 met by R\n  flops C\n",
        "for J in m by 2\n when n < 2\n  for I in n by 0 met by J whole\n   flops 1\n",
        "for J in m by 2\n when J < 2\n  for I in n by 2 - J met by J\n   flops 1\n",
        "new s[n,m]\nphase a\n flops 1\n phase b\n  new r[n]\n",
        "phase a\n new s[n]\n phase b\n  flops 1\nphase a\n drop s\n"}) {
    for (const bool first : {false, true}) {
      NestCase of{head + (first ? slices : "") + lines + (first ? "" : slices) + tail, {}};
      EXPECT_NO_THROW(parse_nest(of.text, "few.nest"));
      of.sizes.extents = {.n = 6, .m = 6, .d = 2, .dv = 2};
      EXPECT_EQ(difference(of) + difference_of_walk(of), "") << of.text;
      of.sizes.mask = Mask::causal(6, 6);
      of.live = PairTable(6, 6, [](Index i, Index j) { return j <= i; });
      EXPECT_EQ(difference(of) + difference_of_walk(of), "") << of.text << " under a mask";
    }
  }
  NestCase pieces{head +
                      "for I in n by 2\n for P in m by 2 met by I\n  new c[n]\n"
                      "  write c[n] as t[each P,n]\n" +
                      tail,
                  {}};
  EXPECT_NO_THROW(parse_nest(pieces.text, "few.nest"));
  pieces.sizes.extents = {.n = 2, .m = 5, .d = 2, .dv = 2};
  pieces.sizes.mask = Mask::window(2, 5, 0, 0) | Mask::prefix(2, 5, 1);
  pieces.live = PairTable(2, 5, [](Index i, Index j) { return j == i + 3 || j < 1; });
  EXPECT_EQ(difference(pieces) + difference_of_walk(pieces), "");
}

// Each condition in loops of the usual forms, under random masks: queries outside or keys outside,
// all that a block meets or pieces of blocks, and three loops inside each other.
TEST(TextNests, CountEachConditionUnderMasks) {
  const std::vector<std::string> forms = {
      "for J in m by B1\n for I in n by B2 met by J\n",
      "for I in n by B1\n for J in m by B2 met by I\n",
      "for G in n by B3\n for J in m by B1\n  for I in G by B2 met by J\n",
      "for J in m by B1\n for G in n by B3\n  for I in G by B2 met by J\n",
      "for J in m by B1\n for I in n by B2 met by J\n  for C in m by B3 met by I\n"};
  int differences = 0;
  for (std::int64_t k = 0; k < cases(kUsualCases) && differences < 3; ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomNests random(seed_of_case(k));
    std::string text = "kernel conditions\nmatrix Q[n] -> y[n] z[m]\nread Q[n]\n" +
                       forms[static_cast<std::size_t>(k) % forms.size()];
    const bool three = k % 5 == 4;
    const std::string indent(k % 5 >= 2 ? 3 : 2, ' ');
    std::vector<std::string> variables = {"I", "J"};
    if (three) {
      variables.emplace_back("C");
    }
    int phase = 0;
    for (const std::string& variable : variables) {
      for (const std::string condition : {"first ", "last ", "unless first ", "unless last "}) {
        for (const std::string index : {"I", "J", "C"}) {
          if (index == "C" && !three) {
            continue;
          }
          const std::string number = std::to_string(++phase);
          const std::string tile = "c" + number + "[" + index + "]";
          const std::string matrix = index == "I" ? "y" : "z";
          const std::string under = condition + variable;
          for (const std::string& line : {"phase p" + number, " new " + tile + " " + under,
                                          " write " + tile + " as " + matrix + " " + under}) {
            text += indent;
            text += line;
            text += "\n";
          }
        }
      }
    }
    const DrawnNest nest{text, parse_nest(text, "conditions.nest")};
    const NestCase drawn = draw_sizes(random, nest, three ? 16 : 40, k % 7 != 6);
    const std::string found = difference(drawn);
    if (!found.empty()) {
      ++differences;
      const NestCase least = smallest(drawn);
      ADD_FAILURE() << found << "The smallest nest:\n" << shown(least) << difference(least);
    }
  }
}

// A tile that is made outside all phases, and is not moved, has the largest peak.
TEST(TextNests, CountThePeakOutsideAllPhases) {
  const NestCase of{
      "kernel few\nmatrix Q[n,d] -> y[n]\nphase p\n  read Q[n,d]\n  drop Q\n  new y[n]\n  write "
      "y[n]\n"
      "new s[n,n]\n",
      {.extents = {.n = 6, .m = 6, .d = 2, .dv = 2}, .blocks = {}}};
  EXPECT_EQ(difference(of), "");
  EXPECT_EQ(total(count(parse_nest(of.text, "few.nest"), of.sizes)).peak, Words(6 + 36));
}

// ------------------------------------------------------------------------------- block sizes

// Nests in which a tile is made under a condition come with the tile's other passes, so that a
// larger block never lowers the peak.
TEST(TextNests, TakeTheBlocksThatMoveTheFewestWords) {
  const std::int64_t all = cases(500);
  std::int64_t refused = 0, combinations = 0, two = 0;
  int differences = 0;
  for (std::int64_t k = 0; k < all && differences < 3; ++k) {
    SCOPED_TRACE(reproduced_by(k));
    RandomNests random(seed_of_case(k));
    NestCase drawn;
    std::vector<Choice> choices;
    for (int tries = 0; choices.empty(); ++tries) {
      const DrawnNest found = draw_nest(random, 3, 2, false, refused);
      if (found.nest.blocks.empty()) {
        continue;
      }
      drawn = draw_sizes(random, found, 12, (k + tries) % 3 == 0);
      drawn.sizes.blocks = Blocks();
      drawn.multiple = random.chance(60) ? 1 : random.any(2, 5);
      choices = choices_of(found.nest, drawn);
      two += choices.empty() || std::ssize(found.nest.blocks) < 2 ? 0 : 1;
    }
    combinations += std::ssize(choices);
    const auto [least, most] = std::ranges::minmax(choices, {}, &Choice::peak);
    drawn.sizes.extents.M = random.any(least.peak, most.peak);
    const std::string found = difference_of_fit(drawn);
    if (!found.empty()) {
      ++differences;
      const NestCase smaller = smallest(drawn, difference_of_fit);
      ADD_FAILURE() << found << shown(drawn) << "The smallest nest:\n"
                    << shown(smaller) << difference_of_fit(smaller);
    }
  }
  std::cout << all << " nests (" << two << " with two blocks, " << refused << " refused), "
            << combinations << " combinations of blocks, " << differences << " differences\n";
}

// Parts that stay in fast memory across loops, or leave a loop without a pass, and an extent that
// is smaller than the multiple.
TEST(TextNests, TakeTheBestPartsThatStay) {
  const std::string head = "kernel few\nmatrix K[m,d] Q[n,d] -> y[n]\n";
  const std::string tail = "read Q[n,d]\nnew y[n]\nwrite y[n]\n";
  for (const std::string lines :
       {"block kept of m\nread K[kept,d] as A\nfor J in m from kept by 2\n read K[J,d]\n"
        "for I in n by B\n read Q[I,d]\n new s[I,8]\n",
        "block kept of m\nfor J in m from kept by 3\n read K[J,d]\n new s[J] t[J,d]\nread "
        "K[kept,d]\n",
        "block kept of m\nfor I in n by B\n read K[kept,d] as A\n for J in m from kept by C\n  "
        "read K[J,d]\n",
        "for I in n by B\n for J in I by max(1, B / 2)\n  read K[1,d]\nread K[m,d] as A\n"}) {
    for (const Index M : {20, 30, 40, 60, 100}) {
      for (const Index multiple : {1, 2, 5, 9}) {
        NestCase of{head + lines + tail, {}, {}, multiple};
        of.sizes.extents = {.n = 6, .m = 7, .d = 2, .dv = 2, .M = M};
        EXPECT_NO_THROW(parse_nest(of.text, "few.nest"));
        EXPECT_EQ(difference_of_fit(of), "") << shown(of);
      }
    }
  }
}

// ------------------------------------------------------------------------------ known figures

// Returns the nests on the page, by name.
std::map<std::string, std::string> nests_of_page() {
  std::ifstream in(std::string(REDBLUE_SOURCE_DIR) + "/docs/nests.md");
  std::map<std::string, std::string> nests;
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      if (inside && text.starts_with("kernel ")) {
        nests[text.substr(7, text.find('\n') - 7)] = text;
      }
      inside = !inside;
      text.clear();
    } else if (inside) {
      text += line + "\n";
    }
  }
  return nests;
}

// Products come before sums, and operators of one kind from left to right. `/` rounds down.
TEST(TextNests, ReadFormulas) {
  const std::map<std::string, Index> formulas = {{"7 - 2 - 1", 4},
                                                 {"2 + 3 * 4", 14},
                                                 {"(2 + 3) * 4", 20},
                                                 {"17 / 5 / 2", 1},
                                                 {"17 / (5 / 2)", 8},
                                                 {"2 * 7 / 3", 4},
                                                 {"2 * (7 / 3)", 4},
                                                 {"20 - 7 / 2 * 3", 11},
                                                 {"ceil(7 / 2) * 2", 8},
                                                 {"ceil((n + 1) / 2)", 19},
                                                 {"min(n, m + 9, 2 * d)", 10},
                                                 {"max(d, min(n, m) - d)", 24},
                                                 {"n * m - (n - m)", 1065},
                                                 {"ceil(3 * 3 / 2)", 5},
                                                 {"M / (4 * d)", 5},
                                                 {"max(1, ceil(d / 10))", 1}};
  for (const auto& [formula, value] : formulas) {
    const TextNest nest =
        parse_nest("kernel k\nmatrix Q[n,d] -> y[n]\nread Q[n,d]\nnew y[n]\nwrite y[n]\nflops " +
                       formula + "\n",
                   formula);
    NestSizes sizes;
    sizes.extents = {.n = 37, .m = 29, .d = 5, .dv = 3, .M = 100};
    EXPECT_EQ(total(count(nest, sizes)).flops, Words(value)) << formula;
  }
}

TEST(TextNests, OnThePageAreCounted) {
  const std::map<std::string, std::string> nests = nests_of_page();
  ASSERT_TRUE(nests.contains("flash2-backward"));
  for (const auto& [name, text] : nests) {
    const TextNest nest = parse_nest(text, name);
    NestCase of{text, {}};
    of.sizes.extents = {.n = 37, .m = 29, .d = 5, .dv = 3};
    for (const NestBlock& block : nest.blocks) {
      of.sizes.blocks.add(nest.symbols[block.symbol].name, 4);
    }
    EXPECT_EQ(difference(of), "") << name;
    of.sizes.mask = Mask::window(37, 29, 6, 3).compact();
    const Index n = of.sizes.mask.queries(), m = of.sizes.mask.keys();
    of.sizes.extents.n = n;
    of.sizes.extents.m = m;
    of.live = PairTable(n, m, [&](Index i, Index j) {
      return of.sizes.mask.pairs({i, i + 1}, {j, j + 1}) == Words(1);
    });
    EXPECT_EQ(difference(of), "") << name << " under a mask";
  }
}

// FlashAttention-2's backward pass with 1000 queries and keys of width 64: 16 blocks of at most 63
// keys, and blocks of one query. The phase v reads dO and O, and writes v.
TEST(TextNests, CountFlashAttention2) {
  const TextNest nest = parse_nest(nests_of_page().at("flash2-backward"), "flash2.nest");
  NestSizes sizes;
  sizes.extents = {.n = 1000, .m = 1000, .d = 64, .dv = 64};
  sizes.blocks = {{"Bv", 127}, {"Bc", 63}, {"Br", 1}};
  InterpretedPhases phases = counted(nest, sizes);
  const Index matrix = 64'000;
  EXPECT_EQ(phases["v"].reads, 2 * matrix);
  EXPECT_EQ(phases["v"].writes, 1000);
  // K and V once; Q, dO, L and v in each of 16 passes, and dQ in 15 of them.
  EXPECT_EQ(phases["core"].reads, 2 * matrix + 16 * (2 * matrix + 2000) + 15 * matrix);
  EXPECT_EQ(phases["core"].reads, 3'168'000);
  EXPECT_EQ(phases["core"].writes, 16 * matrix + 2 * matrix);
  EXPECT_EQ(phases["core"].writes, 1'152'000);
  EXPECT_EQ(phases["core"].flops, Index{10'000} * matrix);

  // Query i meets floor(i / 63) + 1 blocks of keys: 8,440 in all. Each reads Q, dO, L and v and
  // writes dQ. All but the first of each query read dQ.
  sizes.mask = Mask::causal(1000, 1000);
  phases = counted(nest, sizes);
  Index met = 0;
  for (Index i = 0; i < 1000; ++i) {
    met += i / 63 + 1;
  }
  EXPECT_EQ(phases["core"].reads, 2 * matrix + met * (2 * 64 + 2) + (met - 1000) * 64);
  EXPECT_EQ(phases["core"].reads, 1'701'360);
  EXPECT_EQ(phases["core"].writes, met * 64 + 2 * matrix);
  EXPECT_EQ(phases["core"].writes, 668'160);
}

}  // namespace
}  // namespace redblue
