// A user's kernel on memsim alone: B = A^T in blocks of side x side, with 2 side^2 <= M. Each word
// is read once and written once.

#include <iostream>
#include <vector>

#include <redblue/memsim/machine.hpp>

using namespace redblue;  // NOLINT(google-build-using-namespace): an example

namespace {

void transpose(Machine& machine, Index side, const SlowMatrix& A, SlowMatrix& B) {
  const Phase phase(machine, "transpose");
  for (const Range I : blocks(A.rows(), side)) {
    for (const Range J : blocks(A.cols(), side)) {
      const Tile a = machine.read(A.block(I, J));
      Tile b = machine.initialize("b", J.size(), I.size());
      for (Index i = 0; i < a.rows(); ++i) {
        for (Index j = 0; j < a.cols(); ++j) {
          b(j, i) = a(i, j);
        }
      }
      machine.write(b, B.block(J, I));
    }
  }
}

}  // namespace

int main() {
  const Index n = 50;
  const Index m = 37;
  const Index side = 8;
  std::vector<float> a(static_cast<std::size_t>(n * m));
  for (std::size_t k = 0; k < a.size(); ++k) {
    a[k] = static_cast<float>(k);
  }
  std::vector<float> b(a.size());
  const SlowMatrix A = borrow("A", a.data(), n, m);
  SlowMatrix B = borrow("B", b.data(), m, n);

  Machine machine(2 * side * side);
  transpose(machine, side, A, B);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      if (b[static_cast<std::size_t>(j * n + i)] != a[static_cast<std::size_t>(i * m + j)]) {
        std::cerr << "B(" << j << ", " << i << ") is not A(" << i << ", " << j << ")\n";
        return 1;
      }
    }
  }
  const auto moved = total(machine.phases());
  std::cout << moved.io.reads << " words read, " << moved.io.writes << " written, " << moved.peak
            << " live at most\n";
  return moved.io == IoCount{n * m, n * m} && moved.peak == 2 * side * side ? 0 : 1;
}
