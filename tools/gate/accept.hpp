#pragma once
// Changes of words that somebody takes into a baseline, point by point, with a reason.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/gate/comparison.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Who accepts, why and when; nothing where nothing is to be accepted. Throws: UsageError.
std::optional<Accepted> accepted_by(const TextOption& accept, const TextOption& reason,
                                    const TextOption& who, const std::string& baseline);

struct Accept {
  Given given;              // with the name of the point
  bool by_pattern = false;  // of several, some of which may be as they were
};
// The points of a baseline that are to be accepted, each once, by their places there. A pattern,
// such as "decode/*", is for all points that match it. Throws: UsageError if there is none.
std::map<std::size_t, Accept> to_accept(const std::vector<Given>& asked, const Recording& baseline);

// Takes what a point moves now into `recorded`, and returns what is said of it. Throws: UsageError
// for a point that has no words now, that is over a budget, or where nothing differs.
std::string accept(const Given& given, const Accepted& by, Compared& compared,
                   RecordedPoint& recorded);

// A recording may be written over, but no suite. Throws: UsageError; std::system_error.
void refuse_over_suite(const Given& out);

// What was accepted in the recording that is to be written over stays, of the points that are
// still there and have nothing accepted. A line to say once it is written over, where it was none
// that can be read; else empty. Throws: std::system_error.
[[nodiscard]] std::string keep_accepted(const std::string& target, Recording& recording);

}  // namespace redblue
