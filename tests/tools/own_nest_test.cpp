// NestWitness takes a run if and only if it moves the words of the nest and has its peak. Random
// nests walk on a machine (kernels/nests/walk.hpp). It counts without the closed forms of nests.

#include "tools/gate/own_nest.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/nests/walk.hpp"
#include "memsim/errors.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/random_nests.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

constexpr Index kWitnessM = 100'000'000;

// Puts all statements into the phase "all". A walk names a phase for statements outside phases.
std::string in_a_phase(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  bool in_head = true;
  for (std::string line; std::getline(lines, line);) {
    const std::string word = line.substr(0, line.find_first_of(" -\r"));
    const std::vector<std::string> heads = {"",     "#",     "kernel", "problem", "two",
                                            "once", "takes", "matrix", "temp",    "block"};
    if (in_head && std::ranges::find(heads, word) == heads.end()) {
      in_head = false;
      result += "phase all\n";
    }
    result += (in_head ? "" : " ") + line + "\n";
  }
  return result;
}

// Walks a nest, then reads `more` words of its first matrix in the phase "all", and holds `room`
// words outside phases. Returns the complaint of the witness.
std::string witnessed(const TextNest& nest, const std::string& file, const Arguments& given,
                      Index more, Index room) {
  Machine machine(kWitnessM);
  const NestWitness witness(machine);
  NestSizes sizes{.extents = {.n = given["n"],
                              .m = given["m"],
                              .d = given["d"],
                              .dv = given["dv"],
                              .M = given["M"]},
                  .blocks = {}};
  for (const NestBlock& block : nest.blocks) {
    const std::string& name = nest.symbols[block.symbol].name;
    if (given.contains(name)) {
      sizes.blocks.add(name, given[name]);
    }
  }
  walk(machine, nest, sizes, {});
  if (more > 0) {
    const Phase phase(machine, "all");
    const SlowMatrix again(nest.matrices.front().name, more, 1);
    static_cast<void>(machine.read(again.block({0, more}, {0, 1})));
  }
  if (room > 0) {
    static_cast<void>(machine.initialize("room", room));
  }
  try {
    witness.compare(file, {"random", given}, final_counts(machine));
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(NestWitnesses, TakeWalksOfTheNestAlone) {
  const TemporaryDirectory directory;
  std::int64_t walked = 0;
  for (std::int64_t k = 0; k < cases(600); ++k) {
    SCOPED_TRACE(testing::Message() << "seed " << seed_of_case(k));
    RandomNests random(seed_of_case(k));
    const std::string text = in_a_phase(random.nest(4, 3, true));
    const std::string file = directory.write("random.nest", text).string();
    std::optional<TextNest> nest;
    Arguments given;
    Index peak = 0;
    std::string same;
    try {
      nest = parse_nest(text, "random.nest");
      for (const char* extent : {"n", "m", "d", "dv"}) {
        given.set(extent, random.any(1, 6));
      }
      given.set("M", Index{1000});
      for (const NestBlock& block : nest->blocks) {
        if (!block.size || random.chance(30)) {
          given.set(nest->symbols[block.symbol].name, random.any(1, 7));
        }
      }
      peak = predicted(nest_words(file, "random", given)).total.peak;
      same = witnessed(*nest, file, given, 0, 0);
    } catch (const std::invalid_argument&) {
      continue;  // no nest, a step of 0, or a tile that leaves its matrix
    } catch (const CountOverflow&) {
      continue;
    }
    ++walked;
    ASSERT_EQ(same, "") << text << to_string(given);
    // One word more than the peak is refused, and so is one more read.
    const std::string higher = witnessed(*nest, file, given, 0, peak + 1);
    EXPECT_NE(higher.find("room " + std::to_string(peak + 1)), std::string::npos)
        << higher << "\n"
        << text << to_string(given);
    const std::string longer = witnessed(*nest, file, given, 1, 0);
    EXPECT_TRUE(longer.find("of " + nest->matrices.front().name + " ") != std::string::npos ||
                longer.find("the kernel enters the phase all, ") != std::string::npos)
        << longer << "\n"
        << text << to_string(given);
  }
  EXPECT_GT(walked, cases(600) / 3);
  std::cout << walked << " nests\n";
}

}  // namespace
}  // namespace redblue
