#include "runtime/report/known_schedules.hpp"

#include <algorithm>

#include "kernels/registry.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

KnownSchedule::Tiles tiles_of(const Json& json) {
  KnownSchedule::Tiles tiles{.least_n = json.value("least_n", 1).get<Index>(),
                             .most_d = json.value("most_d", 0).get<Index>()};
  if (json.contains("causal")) {
    tiles.causal = json.at("causal").get<bool>();
  }
  for (const auto& [name, size] : json.at("blocks").items()) {
    tiles.blocks.add(name, size.get<Index>());
  }
  return tiles;
}

KnownSchedule schedule_of(const Json& json) {
  KnownSchedule schedule{.name = json.at("name").get<std::string>(),
                         .title = json.at("title").get<std::string>()};
  for (const Json& pass : json.at("passes")) {
    KnownSchedule::OfPass of{.kernel = &find_kernel(pass.at("kernel").get<std::string>()),
                             .source = pass.at("source").get<std::string>()};
    for (const Json& tiles : pass.at("tiles")) {
      of.tiles.push_back(tiles_of(tiles));
    }
    schedule.passes.push_back(std::move(of));
  }
  if (json.contains("missing")) {
    for (const Pass pass : {Pass::attention, Pass::gradients}) {
      if (const auto name = std::string(to_string(pass)); json.at("missing").contains(name)) {
        schedule.missing[pass] = json.at("missing").at(name).get<std::string>();
      }
    }
  }
  return schedule;
}

}  // namespace

const KnownSchedule::Tiles* KnownSchedule::OfPass::for_problem(const Problem& problem) const {
  const auto [n, m, d] = problem.one_head().shape;
  const bool causal = problem.mask.spec() == "causal";
  const auto found = std::ranges::find_if(tiles, [&, n = n, d = d](const Tiles& its) {
    return n >= its.least_n && (its.most_d == 0 || d <= its.most_d) &&
           its.causal.value_or(causal) == causal;
  });
  return found == tiles.end() ? nullptr : &*found;
}

const KnownSchedule::OfPass* KnownSchedule::of(Pass pass) const {
  const auto found =
      std::ranges::find_if(passes, [&](const OfPass& its) { return its.kernel->pass == pass; });
  return found == passes.end() ? nullptr : &*found;
}

const std::vector<KnownSchedule>& known_schedules() {
  static const std::vector<KnownSchedule> all = [] {
    std::vector<KnownSchedule> known;
    for (const auto& [name, text] : known_schedule_files()) {
      known.push_back(schedule_of(parse_json(text, name)));
    }
    std::ranges::sort(known, {}, &KnownSchedule::name);
    return known;
  }();
  return all;
}

}  // namespace redblue
