// expect: discards qualifiers|no matching function for call
// A product cannot add to a const tile in any form.
#include "kernels/arithmetic/arithmetic.hpp"

#ifdef CONTROL
void add(const redblue::Tile& a, const redblue::Tile& b, redblue::Tile& c) {
#else
void add(const redblue::Tile& a, const redblue::Tile& b, const redblue::Tile& c) {
#endif
  redblue::multiply_add(redblue::transposed(a), b, c);
}
