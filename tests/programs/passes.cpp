// A user's kernels behind redblue::gate_main, for tests of sweeps, pictures, traces and replays.

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <redblue/memsim/host_access.hpp>
#include <redblue/tools/gate/own_kernel.hpp>

using namespace redblue;  // NOLINT(google-build-using-namespace): a user's program

namespace {

void read_rows(Machine& machine, const SlowMatrix& from, SlowMatrix* to) {
  for (const Range I : blocks(from.rows(), 1)) {
    const Tile row = machine.read(from.row_block(I));
    if (to != nullptr) {
      machine.write(row, to->row_block(I));
    }
  }
}

// Reads all rows twice, and writes them in the second pass.
void twice(Machine& machine, const Arguments& given) {
  SlowMatrix from("from", given["n"], given["m"]);
  SlowMatrix to("to", given["n"], given["m"]);
  HostAccess::put(from,
                  std::vector<float>(static_cast<std::size_t>(given["n"] * given["m"]), 1.0F));
  {
    const Phase phase(machine, "first");
    read_rows(machine, from, nullptr);
  }
  const Phase phase(machine, "second");
  read_rows(machine, from, &to);
}

std::vector<PhaseCost> words(const Arguments& given) {
  const Words all = Words(given["n"]) * given["m"];
  return {{"first", all, 0, given["m"], 0}, {"second", all, all, given["m"], 0}};
}

std::vector<PhaseCost> a_word_more(const Arguments& given) {
  std::vector<PhaseCost> phases = words(given);
  phases[1].writes += 1;
  return phases;
}

// Has no phase and no formula.
void once(Machine& machine, const Arguments& given) {
  const SlowMatrix from("from", given["n"], given["m"]);
  SlowMatrix to("to", given["n"], given["m"]);
  read_rows(machine, from, &to);
}

// Writes sums of two words each, made from rows, and reads them again.
void weighed(Machine& machine, const Arguments& given) {
  machine.weigh(Holds::sums, 2);
  const SlowMatrix from("from", given["n"], given["m"]);
  SlowMatrix to = SlowMatrix("to", given["n"], given["m"]).holding(Holds::sums);
  {
    const Phase phase(machine, "made");
    for (const Range I : blocks(from.rows(), 1)) {
      const Tile row = machine.read(from.row_block(I));
      const Tile sum = machine.initialize("sum", 1, from.cols());
      machine.write(sum, to.row_block(I));
    }
  }
  const Phase phase(machine, "read");
  read_rows(machine, to, nullptr);
}

std::vector<PhaseCost> words_of_weighed(const Arguments& given) {
  const Index m = given["m"];
  const Words all = Words(given["n"]) * m;
  return {{"made", all, 2 * all, 3 * m, 0}, {"read", 2 * all, 0, 2 * m, 0}};
}

void crashes(Machine& machine, const Arguments& given) {
  once(machine, given);
  if (given["n"] == 7) {
    ::signal(SIGSEGV, SIG_DFL);  // sanitizers would print a long report
    ::raise(SIGSEGV);
  }
}

void speaks(Machine& machine, const Arguments& given) {
  std::puts("a kernel speaks");
  once(machine, given);
}

void nothing(Machine&, const Arguments&) {}

void levels_of_rows(Machine& machine, const Arguments& given) {
  const SlowMatrix from("from", given["level"], 1);
  read_rows(machine, from, nullptr);
}

REDBLUE_KERNEL("passes/twice", twice, "n", "m").formula(words).summary("row by row, two times");
REDBLUE_KERNEL("passes/once", once, "n", "m");
REDBLUE_KERNEL("passes/weighed", weighed, "n", "m").formula(words_of_weighed);
REDBLUE_KERNEL("passes/wrong", twice, "n", "m").formula(a_word_more);
REDBLUE_KERNEL("passes/crash", crashes, "n", "m");
REDBLUE_KERNEL("passes/speaks", speaks, "n", "m");
REDBLUE_KERNEL("passes/nothing", nothing, "n", "m");
REDBLUE_KERNEL("passes/columns", levels_of_rows, "level", "reads");

}  // namespace
