#pragma once
// A phase name that is too long for any string. A listener that copies it fails, as it would
// without memory.

#include <cstddef>
#include <limits>
#include <string_view>

#include "memsim/events.hpp"

namespace redblue {

inline Event phase_without_room() {
  volatile std::size_t size = std::numeric_limits<std::size_t>::max() - 1;  // not a constant
  return {.kind = Event::Kind::enter_phase, .name = std::string_view("", size)};
}

}  // namespace redblue
