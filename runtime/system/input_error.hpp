#pragma once

#include <stdexcept>

namespace redblue {

// Reports bad content of an input. The message is one line with the file, the fault and the
// expected content.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace redblue
