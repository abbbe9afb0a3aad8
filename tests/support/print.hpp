#pragma once
// Prints values of memsim when a test fails.

#include <ostream>

#include "memsim/io_count.hpp"
#include "memsim/phase.hpp"
#include "memsim/range.hpp"

namespace redblue {

inline void PrintTo(const Range& range, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << '[' << range.begin << ", " << range.end << ')';
}
inline void PrintTo(const IoCount& io, std::ostream* out) {  // NOLINT
  *out << io.reads << " read, " << io.writes << " written";
}
inline void PrintTo(const PhaseCounts& phase, std::ostream* out) {  // NOLINT
  *out << '"' << phase.path << "\" " << phase.io.reads << " read, " << phase.io.writes
       << " written, " << phase.operations.flops << " flops, " << phase.operations.elementwise
       << " elementwise, peak " << phase.peak;
}

}  // namespace redblue
