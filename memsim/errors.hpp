#pragma once
// Errors of the counted machine. Every message is one line that names the culprit.

#include <stdexcept>
#include <string>

#include "memsim/words.hpp"

namespace redblue {

// Misuse by a caller, most often blocks, tiles or matrices that do not fit together.
class ShapeMismatch : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A request exceeds the free fast memory. The machine is as it was before the request.
class FastMemoryOverflow : public std::runtime_error {
 public:
  FastMemoryOverflow(const std::string& message, Index missing_words)
      : std::runtime_error(message), missing_(missing_words) {}

  // The words by which M would have to grow for this request to pass.
  [[nodiscard]] Index missing() const { return missing_; }

 private:
  Index missing_;
};

// A count that does not fit 63 bits.
class CountOverflow : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// Throws: ShapeMismatch naming `what` unless `holds`.
inline void require(bool holds, const char* what) {
  if (!holds) {
    throw ShapeMismatch(std::string("required: ") + what);
  }
}

}  // namespace redblue
