// expect: discards qualifiers|drops 'const' qualifier|no viable conversion
// Arithmetic cannot change a const tile.
#include "kernels/arithmetic/arithmetic.hpp"

#ifdef CONTROL
void add(const redblue::Tile& a, redblue::Tile& sum) {
#else
void add(const redblue::Tile& a, const redblue::Tile& sum) {
#endif
  redblue::add_row_sums(a, sum);
}
