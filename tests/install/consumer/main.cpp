// A user's kernel on an installed redblue. It counts the sums of a matrix's columns and checks them
// against a closed form. It stops where fast memory ends and where an index leaves a tile. Then
// comes a kernel of redblue, and last a tile that outlives its machine.

#include <iostream>
#include <string>
#include <vector>

#include <redblue/kernels/kernel.hpp>
#include <redblue/memsim/host_access.hpp>
#include <redblue/memsim/machine.hpp>
#include <redblue/memsim/workspace.hpp>

using namespace redblue;  // NOLINT(google-build-using-namespace): an example

namespace {

// sum = the sums of the columns of A. A strip of `width` sums stays resident, and blocks of rows
// stream. Reads every word of A once, writes every sum once, and holds (rows + 1) width words.
void column_sums(Machine& machine, Index rows, Index width, const SlowMatrix& A, SlowMatrix& sum) {
  const Phase phase(machine, "column sums");
  for (const Range J : blocks(A.cols(), width)) {
    Tile s = machine.initialize("sum", 1, J.size());
    for (const Range I : blocks(A.rows(), rows)) {
      const Tile a = machine.read(A.block(I, J));
      for (Index i = 0; i < a.rows(); ++i) {
        for (Index j = 0; j < a.cols(); ++j) {
          s(0, j) += a(i, j);
        }
      }
      machine.computed({.elementwise = a.words()});
    }
    machine.write(s, sum.block({0, 1}, J));
  }
}

Tile kept;  // destroyed after main() has returned

bool failed = false;
void expect(bool holds, const char* what) {
  if (!holds) {
    std::cerr << "not so: " << what << '\n';
    failed = true;
  }
}

}  // namespace

int main() {
  const Index n = 100;
  const Index m = 37;
  const std::vector<float> ones(static_cast<std::size_t>(n * m), 1.0F);
  std::vector<float> sums(static_cast<std::size_t>(m));
  const SlowMatrix A = borrow("A", ones.data(), n, m);
  SlowMatrix sum = borrow("sum", sums.data(), 1, m);

  Machine machine(6 * 10);
  column_sums(machine, 5, 10, A, sum);
  const PhaseCounts all = total(machine.phases());
  expect(all.io == IoCount{n * m, m}, "every word is read once, every sum written once");
  expect(all.operations == Operations{0, n * m}, "one addition a word");
  expect(all.peak == 60 && machine.live() == 0, "a block and a strip of sums are live, then none");
  expect(leaves(machine.phases()).front().path == "column sums", "the phase has its name");
  expect(sums == std::vector<float>(sums.size(), static_cast<float>(n)), "the sums are n");

  try {
    column_sums(machine, 6, 10, A, sum);
    expect(false, "70 words do not fit in 60");
  } catch (const FastMemoryOverflow& overflow) {
    std::cout << overflow.what() << '\n';
    expect(overflow.missing() == 10, "10 words are missing");
    expect(machine.live() == 0 && total(machine.phases()).io == all.io, "nothing was counted");
  }

  {
    Tile a = machine.initialize("a", 2, 2);
    const Tile b = machine.initialize("b", 2, 2);
    try {
      for (Index k = 0; k < 400; ++k) {
        a(k, 0) = 5;
      }
      expect(false, "an index outside a tile is refused");
    } catch (const ShapeMismatch& mismatch) {
      std::cout << mismatch.what() << '\n';
      expect(mismatch.what() == std::string("a(2, 0) leaves a, which is 2 x 2"), "it is named");
    }
    expect(b(0, 0) == 0, "no word of another tile has changed");
    try {
      static_cast<void>(ConstView(a)(0, 2));
      expect(false, "an index outside a view is refused");
    } catch (const ShapeMismatch& mismatch) {
      std::cout << mismatch.what() << '\n';
    }
  }

  SlowMatrix B("B", m, 8);
  SlowMatrix C("C", n, 8);
  HostAccess::put(B, std::vector<float>(static_cast<std::size_t>(m * 8), 2.0F));
  const Kernel& product = find_kernel("matmul/blocked");
  const Plan plan = product.plan({n, 8, m}, 300);
  Machine larger(300);
  RamWorkspace workspace;
  product.run(larger, plan, {{&A, &B}, {&C}}, workspace);
  expect(total(larger.phases()).io.reads == total(plan.phases).reads.value(), "counts are planned");
  std::vector<float> products(static_cast<std::size_t>(n * 8));
  HostAccess::get(C, products);
  expect(products.back() == 2 * static_cast<float>(m), "C = A B");

  {
    Machine brief(4);
    kept = brief.initialize("kept", 2, 2);
  }
  expect(kept.words() == 0, "a tile without its machine is empty");
  return failed ? 1 : 0;
}
