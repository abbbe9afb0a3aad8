#include "runtime/gate/merge.hpp"

#include <map>

#include <fmt/format.h>

#include "runtime/gate/comparison.hpp"

namespace redblue {
namespace {

// Returns the difference between two recordings of a point. Requires: they are not equal.
std::string difference_of(const RecordedPoint& a, const RecordedPoint& b) {
  if (const std::vector<Difference> found = differences(a, b, {}); !found.empty()) {
    return to_words(found.front());
  }
  if (a.at_most != b.at_most || a.bound != b.bound) {
    return "its at_most";
  }
  return a.accepted != b.accepted ? "what is accepted there" : "the files that it names";
}

}  // namespace

MergedRecording merge(const std::vector<NamedRecording>& parts) {
  std::vector<PartThere> there;
  std::vector<std::map<std::string, const RecordedPoint*>> points(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& [name, recording] = parts[p];
    if (!recording.part) {
      throw InputError(name + " is no part of a recording: `record --part i/N` makes one");
    }
    there.push_back({name, recording.part->part, recording.part->origin, {}});
    for (const RecordedPoint& recorded : recording.points) {
      there.back().points.push_back(to_string(recorded.point));
      points[p][there.back().points.back()] = &recorded;
    }
  }
  const std::vector<std::vector<std::size_t>> holders = holders_of(there);
  MergedRecording merged{.recording = {.how = parts.front().recording.how},
                         .missing = missing_points(there, holders).text};
  for (std::size_t k = 0; k < holders.size(); ++k) {
    const std::string& name = there.front().origin.points[k];
    const RecordedPoint* first = nullptr;
    for (const std::size_t p : holders[k]) {
      const RecordedPoint* recorded = points[p].at(name);
      if (first != nullptr && *recorded != *first) {
        throw InputError(fmt::format("{} and {} differ at {}: {}", parts[holders[k].front()].name,
                                     parts[p].name, name, difference_of(*first, *recorded)));
      }
      first = recorded;
    }
    if (first != nullptr) {
      merged.recording.points.push_back(*first);
    }
  }
  return merged;
}

}  // namespace redblue
