#include "kernels/parts/partial_sums.hpp"

#include "memsim/machine.hpp"
#include "memsim/partial.hpp"

namespace redblue {

void write_sums(Machine& machine, const Tile& sums, SlowMatrix& to, Range rows, const Ranges& later,
                Orientation orientation) {
  const auto write = [&](const Block& block) {
    if (orientation == Orientation::straight) {
      machine.write(sums, block);
    } else {
      machine.write(sums, transposed(block));
    }
  };
  const Ranges whole = without({rows}, later);
  if (later.empty()) {
    write(to.row_block(rows));
  } else if (whole.empty()) {
    write(to.row_block(rows).holding(Holds::sums));
  } else {
    write(only_rows(to, whole).row_block(rows));
    write(only_rows(to, later).row_block(rows).holding(Holds::sums));
  }
}

}  // namespace redblue
