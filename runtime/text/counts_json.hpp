#pragma once
// Counts as JSON for this program alone: for checkpoints, and from a child process to its parent.

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "memsim/phase.hpp"

namespace redblue {

// [path, reads, writes, peak, flops, elementwise]
inline nlohmann::ordered_json counts_json(const PhaseCounts& phase) {
  return {phase.path, phase.io.reads,         phase.io.writes,
          phase.peak, phase.operations.flops, phase.operations.elementwise};
}

inline PhaseCounts parse_phase_counts(const nlohmann::ordered_json& json) {
  return {.path = json.at(0),
          .io = {.reads = json.at(1), .writes = json.at(2)},
          .operations = {.flops = json.at(4), .elementwise = json.at(5)},
          .peak = json.at(3)};
}

// An object, without the keys of what is unknown.
inline nlohmann::ordered_json counts_json(const RunCounts& counts) {
  nlohmann::ordered_json json = {{"phases", nlohmann::ordered_json::array()}};
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

inline RunCounts parse_run_counts(const nlohmann::ordered_json& json) {
  RunCounts counts{.phases = {}, .total = parse_phase_counts(json.at("total"))};
  for (const nlohmann::ordered_json& phase : json.at("phases")) {
    counts.phases.push_back(parse_phase_counts(phase));
  }
  if (json.contains("seconds")) {
    counts.seconds = RunCounts::Seconds{.phases = json.at("seconds").get<std::vector<double>>(),
                                        .total = json.at("total_seconds")};
  }
  const auto known = [&](const char* key) {
    return json.contains(key) ? std::optional(json.at(key).get<Index>()) : std::nullopt;
  };
  counts.largest = known("largest");
  counts.span = known("span");
  return counts;
}

}  // namespace redblue
