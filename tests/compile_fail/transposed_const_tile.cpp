// expect: no matching function for call
#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

// Arithmetic in place cannot change a const tile through its transpose.
#ifdef CONTROL
void change(redblue::Tile& q_t, const redblue::Tile& f_t, const redblue::Tile& v) {
#else
void change(const redblue::Tile& q_t, const redblue::Tile& f_t, const redblue::Tile& v) {
#endif
  redblue::softmax_gradient(redblue::transposed(f_t), v, redblue::transposed(q_t));
}
