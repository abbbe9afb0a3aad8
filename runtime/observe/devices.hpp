#pragma once
// Devices whose fast memory is documented, for the question which algorithm is for which of them.

#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct Device {
  std::string name;
  Index bytes = 0;          // of fast memory, for one worker: an SM, a compute unit, a core
  std::string source = {};  // what memory that is, and who says so; or where the size was given
};

// Smallest first.
const std::vector<Device>& devices();

}  // namespace redblue
