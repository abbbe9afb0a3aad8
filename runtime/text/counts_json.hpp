#pragma once
// Counts as JSON for this program alone: for checkpoints, and from a child process to its parent.

#include <optional>
#include <vector>

#include "memsim/phase.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// [path, reads, writes, peak, flops, elementwise, index_reads, index_writes]
inline Json counts_json(const PhaseCounts& phase) {
  return Json::array({phase.path, phase.io.reads, phase.io.writes, phase.peak,
                      phase.operations.flops, phase.operations.elementwise, phase.indices.reads,
                      phase.indices.writes});
}

inline PhaseCounts parse_phase_counts(const Json& json) {
  const auto count = [&](std::size_t k) { return json.at(k).get<Index>(); };
  return {.path = json.at(0).get<std::string>(),
          .io = {.reads = count(1), .writes = count(2)},
          .operations = {.flops = count(4), .elementwise = count(5)},
          .peak = count(3),
          .indices = {.reads = count(6), .writes = count(7)}};
}

// An object without keys for unknown members.
inline Json counts_json(const RunCounts& counts) {
  Json json = {{"phases", Json::array()}};
  for (const PhaseCounts& phase : counts.phases) {
    json["phases"].push_back(counts_json(phase));
  }
  if (counts.seconds) {
    json["seconds"] = counts.seconds->phases;
  }
  json["total"] = counts_json(counts.total);
  if (counts.largest) {
    json["largest"] = *counts.largest;
  }
  if (counts.seconds) {
    json["total_seconds"] = counts.seconds->total;
  }
  if (counts.span) {
    json["span"] = *counts.span;
  }
  return json;
}

inline RunCounts parse_run_counts(const Json& json) {
  RunCounts counts{.phases = {}, .total = parse_phase_counts(json.at("total"))};
  for (const Json& phase : json.at("phases")) {
    counts.phases.push_back(parse_phase_counts(phase));
  }
  if (json.contains("seconds")) {
    counts.seconds = {.phases = {}, .total = json.at("total_seconds").get<double>()};
    for (const Json& seconds : json.at("seconds")) {
      counts.seconds->phases.push_back(seconds.get<double>());
    }
  }
  const auto known = [&](const char* key) {
    return json.contains(key) ? std::optional(json.at(key).get<Index>()) : std::nullopt;
  };
  counts.largest = known("largest");
  counts.span = known("span");
  return counts;
}

}  // namespace redblue
