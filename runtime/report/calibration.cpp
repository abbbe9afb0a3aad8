#include "runtime/report/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/observe/machine_file.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr double kNoise = 0.02;

// Returns the reason why a cache has no fastest share.
std::string too_small() {
  return fmt::format("{} needs a larger M", kTimedKernel);
}

std::vector<Cells> share_rows(const CalibratedCache& cache) {
  const auto fast = fastest(cache.shares);
  const auto agree = agreeing(cache.shares);
  return rows_of(cache.shares, [&](const MeasuredShare& share) -> Cells {
    const Index is_fastest = fast && fast->share == share.share ? 1 : 0;
    const Index agrees = agree && agree->share == share.share ? 1 : 0;
    const auto percent = share.of_peak ? std::optional(100 * *share.of_peak) : std::nullopt;
    return {{{"cache", "", "cache"}, to_string(cache.level)},
            {in_csv("bytes"), cache.bytes},
            {"share", share.share},
            {{"M", "words", "M"}, share.words},
            {{"of peak", "percent_of_peak"}, decimals(percent, 1, "%", "M too small")},
            {{"traffic / counted", "ratio"}, decimals(share.ratio, 3)},
            {in_csv("fastest"), is_fastest},
            {in_csv("agreeing"), agrees},
            {in_table(" "), is_fastest * agrees != 0 ? "fastest, agrees best"
                            : is_fastest != 0        ? "fastest"
                            : agrees != 0            ? "agrees best"
                                                     : ""}};
  });
}

void add_level(Description& of, const CalibratedCache& cache) {
  Description level;
  level.facts({{in_json("cache"), to_string(cache.level)}, {in_json("bytes"), cache.bytes}});
  if (const auto best = fastest(cache.shares)) {
    level.fact("fastest", Json{{"share", best->share},
                               {"words", best->words},
                               {"percent_of_peak", 100 * *best->of_peak}});
  } else {
    level.fact("fastest.unavailable", too_small());
  }
  if (const auto best = agreeing(cache.shares)) {
    level.fact("agreeing", Json{{"share", best->share},
                                {"words", best->words},
                                {"ratio", *best->ratio},
                                {"via", cache.via},
                                {"n", cache.side},
                                {"d", cache.side}});
  } else {
    level.fact("agreeing.unavailable", cache.no_traffic);
  }
  level.fact("shares", json_of(share_rows(cache)));
  of.element("levels", level);
  of.say("{}: {} bytes; traffic {}", to_string(cache.level),
         grouped(static_cast<Index>(cache.bytes)),
         cache.no_traffic.empty()
             ? fmt::format("of {} n=m=d={}, by {}", kTrafficKernel, cache.side, cache.via)
             : fmt::format("unavailable: {}", cache.no_traffic));
}

LinkCosts links_of(const JsonField& found) {
  return {.origin = found["origin"].text(),
          .seconds_a_message = found["seconds_a_message"].measure(),
          .seconds_a_word = found["seconds_a_word"].measure()};
}

std::vector<WordCost> words_of(const JsonField& found, const MachineFile& file) {
  std::vector<WordCost> words;
  for (const JsonField& entry : found.items()) {
    const auto bytes = entry.unless_null("bytes");
    words.push_back({entry["from"].text(),
                     bytes ? static_cast<std::uint64_t>(bytes->words()) : std::uint64_t{0},
                     entry["nanoseconds"].measure()});
    if (!(words.back().nanoseconds > 0) || std::isinf(words.back().nanoseconds)) {
      file.refuse(fmt::format("a word of {} takes no time above 0", words.back().from));
    }
  }
  const auto memory = std::ranges::find(words, std::uint64_t{0}, &WordCost::bytes);
  if (!words.empty() && (memory != words.end() - 1 ||
                         !std::ranges::is_sorted(words.begin(), memory, {}, &WordCost::bytes))) {
    file.refuse("words are not those of smaller caches, larger ones, and memory");
  }
  return words;
}

CoreSpeed core_of(const JsonField& found, const MachineFile& file) {
  const CoreSpeed core{found["flops_per_second"].measure(), found["exps_per_second"].measure()};
  for (const double speed : {core.flops_per_second, core.exps_per_second}) {
    if (!(speed > 0) || std::isinf(speed)) {
      file.refuse("a core has no speed above 0");
    }
  }
  return core;
}

void add_core(Description& of, const CoreSpeed& core) {
  of.fact("core", Json{{"flops_per_second", core.flops_per_second},
                       {"exps_per_second", core.exps_per_second}});
  of.say("a core: {:.1f} GF/s of multiply-adds, {:.2f} G/s of exp", 1e-9 * core.flops_per_second,
         1e-9 * core.exps_per_second);
}

void add_words(Description& of, const std::vector<WordCost>& words) {
  Json json = Json::array();
  std::vector<std::string> all;
  for (const auto& [from, bytes, nanoseconds] : words) {
    json.push_back({{"from", from},
                    {"bytes", bytes == 0 ? Json() : Json(bytes)},  // memory has no size
                    {"nanoseconds", nanoseconds}});
    all.push_back(fmt::format("{} {:.4f} ns", from, nanoseconds));
  }
  of.fact("word_costs", std::move(json));
  if (!words.empty()) {
    of.say("what a word takes, copied within: {}", fmt::join(all, ", "));
  }
}

// The text has the first and the last point of each kernel's curve.
void add_rates(Description& of, const Calibration& calibration) {
  of.say(
      "\nwhat a flop takes, where a kernel moves fewest and most words for it (n={}, granules "
      "of {} words):\n",
      calibration.rates_n, calibration.rates.granule);
  of.fact("rates.n", calibration.rates_n);
  of.fact("rates.granule", calibration.rates.granule);
  Json kernels = Json::array();
  std::vector<Cells> rows;
  for (const auto& [kernel, samples] : calibration.rates.kernels) {
    const auto words = [](const RateSample& sample) { return decimals(sample.words_per_flop, 4); };
    const auto picoseconds = [](const RateSample& sample) {
      return decimals(1e12 * sample.seconds_per_flop, 1);
    };
    rows.push_back({{in_table("kernel"), kernel},
                    {in_table("words a flop"), words(samples.front())},
                    {in_table("ps a flop"), picoseconds(samples.front())},
                    {in_table("words a flop"), words(samples.back())},
                    {in_table("ps a flop"), picoseconds(samples.back())}});
    kernels.push_back({{"kernel", kernel},
                       {"samples", json_of(rows_of(samples, [](const RateSample& sample) -> Cells {
                          return {{"words_per_flop", sample.words_per_flop},
                                  {"seconds_per_flop", sample.seconds_per_flop}};
                        }))}});
  }
  of.fact("rates.kernels", std::move(kernels));
  of.table("", std::move(rows));
}

}  // namespace

std::optional<MeasuredShare> fastest(std::span<const MeasuredShare> shares) {
  double largest = 0;
  for (const MeasuredShare& share : shares) {
    largest = std::max(largest, share.of_peak.value_or(0));
  }
  std::optional<MeasuredShare> best;
  for (const MeasuredShare& share : shares) {
    const bool fast = share.of_peak && *share.of_peak >= (1 - kNoise) * largest;
    if (fast && (!best || share.share < best->share)) {
      best = share;
    }
  }
  return best;
}

std::optional<MeasuredShare> agreeing(std::span<const MeasuredShare> shares) {
  const auto distance = [](const MeasuredShare& share) { return std::abs(std::log(*share.ratio)); };
  std::optional<MeasuredShare> best;
  for (const MeasuredShare& share : shares) {
    if (!share.ratio) {
      continue;
    }
    const double off = best ? distance(share) - distance(*best) : -1;
    if (off < 0 || (off == 0 && share.share < best->share)) {
      best = share;
    }
  }
  return best;
}

Description describe(const Calibration& calibration) {
  const Topology& topology = calibration.topology;
  Description of = begin_report(fmt::format(
      "{} ({})\n{} n={} d={}, the median of {} rounds, as a part of what multiply-adds reach ({})",
      topology.model.value_or("processor unknown"), topology.source, kTimedKernel, calibration.n,
      calibration.d, calibration.rounds, calibration.simd));
  of.facts({{in_json("context.simd"), calibration.simd},
            {in_json("context.model"), topology.model},
            {in_json("context.source"), topology.source},
            {in_json("context.caches"), caches_json(topology)},
            {in_json("context.date"), calibration.date},
            {in_json("timed.kernel"), kTimedKernel},
            {in_json("timed.n"), calibration.n},
            {in_json("timed.d"), calibration.d},
            {in_json("timed.objective"), "time"},
            {in_json("timed.rounds"), calibration.rounds},
            {in_json("levels"), Json::array()}});
  std::vector<Cells> shares;
  for (const CalibratedCache& cache : calibration.levels) {
    add_level(of, cache);
    std::ranges::move(share_rows(cache), std::back_inserter(shares));
  }
  of.text("\n");
  of.table("", std::move(shares));
  add_rates(of, calibration);
  of.text("\n");
  add_words(of, calibration.rates.words);
  if (calibration.rates.core) {
    add_core(of, *calibration.rates.core);
  }
  const auto& links = calibration.rates.links;
  of.fact("links", links ? links_json(*links) : Json());
  if (links) {
    of.say("\n{}", to_words(*links));
  }
  return of;
}

std::string with_links(std::string_view text, const std::string& name, const LinkCosts& links) {
  Json document;
  try {
    document = parse_json(text, "it");
    static_cast<void>(document.at("rates"));
  } catch (const std::runtime_error&) {
    throw InputError(
        fmt::format("{0}: it is not what `{1}` writes: run `{1}` again", name, kCalibrate));
  }
  document["links"] = links_json(links);
  return document.document();
}

std::string to_words(const LinkCosts& links) {
  return fmt::format("links: {:.3g} s a message, {:.3g} s a word ({})", links.seconds_a_message,
                     links.seconds_a_word, links.origin);
}

Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology) {
  const MachineFile file(text, name, kCalibrate, topology);
  const JsonField document = file.top();
  if (!document.has("rates")) {
    file.refuse("it has no rates");
  }
  const JsonField found = document["rates"];
  Rates rates{.origin = "calibrated on " + document["context"]["date"].text(),
              .granule = found["granule"].words()};
  for (const JsonField& entry : found["kernels"].items()) {
    KernelRates& of = rates.kernels.emplace_back();
    of.kernel = entry["kernel"].text();
    for (const JsonField& sample : entry["samples"].items()) {
      const RateSample read{sample["words_per_flop"].measure(),
                            sample["seconds_per_flop"].measure()};
      if (!(read.words_per_flop > 0) || !(read.seconds_per_flop > 0)) {
        file.refuse(fmt::format("a rate of {} is not above 0", of.kernel));
      }
      add_sample(of, read);
    }
    if (of.samples.empty()) {
      file.refuse(fmt::format("{} has no rate", of.kernel));
    }
  }
  if (rates.kernels.empty() || rates.granule < 1) {
    file.refuse("it has no rates");
  }
  if (document.has("word_costs")) {
    rates.words = words_of(document["word_costs"], file);
  }
  if (document.has("core")) {
    rates.core = core_of(document["core"], file);
  }
  if (document.has("links")) {
    if (const auto links = document.unless_null("links")) {
      rates.links = links_of(*links);
    }
  }
  return rates;
}

}  // namespace redblue
