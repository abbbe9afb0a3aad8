#pragma once
// Makes the arguments of a gated subject from a list, for tests of gates.

#include <string>
#include <utility>
#include <vector>

#include "runtime/gate/subject.hpp"

namespace redblue {

inline Arguments arguments(const std::vector<std::pair<std::string, Value>>& values) {
  Arguments arguments;
  for (const auto& [name, value] : values) {
    arguments.set(name, value);
  }
  return arguments;
}

}  // namespace redblue
