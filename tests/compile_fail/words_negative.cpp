// expect: refuse_negative
// The compiler refuses a negative constant count of words.
#include "memsim/words.hpp"

#ifdef CONTROL
constexpr redblue::Words kCount(2);
#else
constexpr redblue::Words kCount(-2);
#endif
