// Moves known traffic for a cache simulation. Phase "copy" copies n words from one buffer to
// another through a small fast memory. Phase "again" repeats a copy of few words, which stay in any
// cache. Phase "idle" moves no word.
//
//   known_traffic WORDS RESIDENT-WORDS CACHE-BYTES

#include <cstdlib>

#include "memsim/machine.hpp"
#include "runtime/observe/callgrind.hpp"

using namespace redblue;

namespace {

constexpr Index kBlock = 64;

void copy(Machine& machine, const SlowMatrix& from, SlowMatrix& to) {
  for (const Range rows : blocks(from.rows(), kBlock)) {
    const Tile tile = machine.read(from.block(rows, {0, 1}));
    machine.write(tile, to.block(rows, {0, 1}));
  }
}

}  // namespace

int main(int, char** words) {
  const Index n = std::atoll(words[1]);
  const Index resident = std::atoll(words[2]);
  // Touches all pages first, so that no phase depends on fresh pages.
  std::vector<float> a(static_cast<std::size_t>(n), 1);
  std::vector<float> b(static_cast<std::size_t>(n), 2);
  const SlowMatrix A = borrow("A", std::as_const(a).data(), n, 1);
  SlowMatrix B = borrow("B", b.data(), n, 1);
  const SlowMatrix few = borrow("few", std::as_const(a).data(), resident, 1);
  SlowMatrix others = borrow("others", b.data(), resident, 1);

  Machine machine(kBlock);
  const CallgrindPhases phases(machine, "known", std::strtoull(words[3], nullptr, 10));
  {
    const Phase phase(machine, "copy");
    copy(machine, A, B);
  }
  {
    const Phase phase(machine, "again");
    for (int i = 0; i < 50; ++i) {
      copy(machine, few, others);
    }
  }
  const Phase phase(machine, "idle");
}
