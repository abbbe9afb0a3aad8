// expect: refuse_negative
// A constant count of words that is negative is refused by the compiler.
#include "memsim/words.hpp"

#ifdef CONTROL
constexpr redblue::Words kCount(2);
#else
constexpr redblue::Words kCount(-2);
#endif
