#pragma once
// A subject that nobody knows. Its run and its formula each happen in a child of this process, so
// that a crash ends the child alone.

#include "runtime/gate/subject.hpp"

namespace redblue {

// The same subject; what its functions throw arrives as FastMemoryOverflow, FastMemoryTooSmall,
// CountOverflow, std::bad_alloc or, where it was anything else or a crash, std::runtime_error. They
// may be called from several threads at once, as long as nobody else runs a subject's code in this
// process: a child has one thread, and cannot wait for a lock that another one held.
Subject isolated(Subject subject);

}  // namespace redblue
