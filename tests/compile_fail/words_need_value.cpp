// expect: cannot convert|no viable conversion
// A count may exceed 64 bits, so it becomes a number only through value(), which checks.
#include "memsim/words.hpp"

redblue::Index count(redblue::Words words) {
#ifdef CONTROL
  return words.value();
#else
  return words;
#endif
}
