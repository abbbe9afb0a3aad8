#pragma once
// Recordings of the parts of a suite, put together to the recording of the suite.

#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"

namespace redblue {

struct NamedRecording {
  std::string name;  // of its file, for messages
  Recording recording;
};

struct MergedRecording {
  Recording recording;
  std::string missing;  // what is said of points that no part has; empty if none is missing
};

// Throws: InputError with the names of two recordings that are not parts of one suite or differ in
// a point, and of one that is no part.
MergedRecording merge(const std::vector<NamedRecording>& parts);

}  // namespace redblue
