// expect: no matching function for call
#include "kernels/arithmetic.hpp"
#include "memsim/machine.hpp"

// Arithmetic in place changes no tile that is const by way of its transpose.
#ifdef CONTROL
void change(redblue::Tile& s_t, const redblue::Tile& row) {
#else
void change(const redblue::Tile& s_t, const redblue::Tile& row) {
#endif
  redblue::exponentiate(redblue::transposed(s_t), row);
}
