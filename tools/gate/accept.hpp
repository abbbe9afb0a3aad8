#pragma once
// Accepts changed counts into a baseline, point by point, with a reason.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/gate/comparison.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Returns who accepts, why and when; empty if --accept is not given. Throws: UsageError.
std::optional<Accepted> accepted_by(const TextOption& accept, const TextOption& reason,
                                    const TextOption& who, const std::string& baseline);

struct Accept {
  Given given;              // the option, with the name of the point as its text
  bool by_pattern = false;  // the option is a pattern; points without a change are skipped
};
// Returns the points to accept, by their index in the baseline. A pattern such as "decode/*" names
// all points that match it. Throws: UsageError if an option matches no point.
std::map<std::size_t, Accept> to_accept(const std::vector<Given>& asked, const Recording& baseline);

// Replaces `recorded` by the new counts in `compared`, and returns a line that describes the
// change. Throws: UsageError if the point has no counts now, is over a budget, or did not change.
std::string accept(const Given& given, const Accepted& by, Compared& compared,
                   RecordedPoint& recorded);

// Throws: UsageError if `out` would overwrite a suite (a recording may be overwritten);
// std::system_error.
void refuse_over_suite(const Given& out);

// Copies accepted changes from the recording in the file `target` to the new `recording`. A point
// that already has accepted changes keeps its own. Returns a message if `target` holds no readable
// recording; else empty. Throws: std::system_error.
[[nodiscard]] std::string keep_accepted(const std::string& target, Recording& recording);

}  // namespace redblue
