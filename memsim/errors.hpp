#pragma once
// Errors of the counted machine. Every message is one line that names the culprit.

#include <stdexcept>
#include <string>
#include <system_error>

#include "memsim/words.hpp"

namespace redblue {

// Misuse by a caller, most often blocks, tiles or matrices with shapes that do not match.
class ShapeMismatch : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A request exceeds the free fast memory. The machine is unchanged.
class FastMemoryOverflow : public std::runtime_error {
 public:
  FastMemoryOverflow(const std::string& message, Index missing_words)
      : std::runtime_error(message), missing_(missing_words) {}

  // The number of words by which M would have to grow for this request to pass.
  [[nodiscard]] Index missing() const { return missing_; }

 private:
  Index missing_;
};

// A count that does not fit 63 bits.
class CountOverflow : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// The error if the system refuses a thread. `purpose` names the thread: "rank 7 of 64".
inline std::system_error no_thread(const std::string& purpose, std::error_code reason) {
  return {reason, "no thread can be started for " + purpose +
                      ": ask for fewer, or raise the limit of processes (ulimit -u)"};
}

// Throws: ShapeMismatch with the text `what` unless `holds`.
inline void require(bool holds, const char* what) {
  if (!holds) {
    throw ShapeMismatch(std::string("required: ") + what);
  }
}

}  // namespace redblue
