// expect: is private within this context|is a private member of
// A view gives a word only for a checked index. Unchecked access is for arithmetic alone.
#include "memsim/machine.hpp"

float first(const redblue::ConstView& view) {
#ifdef CONTROL
  return *view.at(0, 0);
#else
  return *view.first_of(0, 0);
#endif
}
