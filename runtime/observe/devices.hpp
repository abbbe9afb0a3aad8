#pragma once
// Devices whose fast memory is documented, for the choice of an algorithm for each of them.

#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct Device {
  std::string name;
  Index bytes = 0;  // of fast memory, for one worker: an SM, a compute unit, a core
  // The memory and the document that describes it; or the origin of the size.
  std::string source = {};
};

// Smallest first.
const std::vector<Device>& devices();

}  // namespace redblue
