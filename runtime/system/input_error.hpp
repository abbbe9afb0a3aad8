#pragma once

#include <stdexcept>

namespace redblue {

// The content of an input is bad. The message is one line: the file, the fault, what was expected.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace redblue
