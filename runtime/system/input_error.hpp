#pragma once

#include <stdexcept>

namespace redblue {

// The content of an input is bad. One line: the file, what is wrong, what was expected.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace redblue
