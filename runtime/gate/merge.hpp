#pragma once
// Merges recordings of the parts of a suite into one recording.

#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"

namespace redblue {

struct NamedRecording {
  std::string name;  // name of its file, for messages
  Recording recording;
};

struct MergedRecording {
  Recording recording;
  // Message about points that no part has. Empty if all points are there.
  std::string missing;
};

// Throws: InputError with the names of two recordings that come from different suites or disagree
// about a point, or of a recording that is not a part.
MergedRecording merge(const std::vector<NamedRecording>& parts);

}  // namespace redblue
