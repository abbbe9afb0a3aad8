#include "runtime/report/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/context.hpp"
#include "runtime/system/read_text.hpp"
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

// Throws the fault of a file with its remedy.
[[noreturn]] void refuse(const std::string& name, std::string_view why) {
  throw InputError(fmt::format("{}: {}: run `redblue calibrate` again", name, why));
}

std::string said(const std::optional<std::string>& model) {
  return model ? fmt::format("'{}'", *model) : "unknown";
}
std::string said(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{} bytes", *bytes) : "an unknown size";
}

void check_machine(const JsonField& context, const std::string& name, const Topology& topology) {
  std::optional<std::string> model;
  if (const auto known_model = context.unless_null("model")) {
    model = known_model->text();
  }
  if (model != topology.model) {
    refuse(name, fmt::format("it is of another processor: {}, and this one is {}", said(model),
                             said(topology.model)));
  }
  for (const CacheLevel level : kCacheLevels) {
    std::optional<std::uint64_t> then;
    for (const JsonField& cache : context["caches"].items()) {
      if (!then && cache["cache"].text() == to_string(level)) {
        then = static_cast<std::uint64_t>(cache["bytes"].words());
      }
    }
    const Cache* cache = topology.cache(level);
    const auto now = cache == nullptr ? std::nullopt : std::optional(cache->bytes);
    if (then != now) {
      refuse(name, fmt::format("it is of another machine, whose {} has {}; here it has {}",
                               to_string(level), said(then), said(now)));
    }
  }
}

CachePart fastest_part(const JsonField& levels, const std::string& name) {
  for (const CacheLevel level : {CacheLevel::L2, CacheLevel::L1}) {
    for (const JsonField& entry : levels.items()) {
      if (entry["cache"].text() != to_string(level)) {
        continue;
      }
      const JsonField best = entry["fastest"];
      if (best.has("unavailable")) {
        refuse(name, fmt::format("nothing could be timed in {}: {}", to_string(level),
                                 best["unavailable"].text()));
      }
      const double share = best["share"].measure();
      if (!(share > 0) || share > 1) {
        refuse(name, fmt::format("{} is no share of {}", share, to_string(level)));
      }
      return {level, share};
    }
  }
  refuse(name, "it has neither L2 nor L1");
}

LinkCosts links_of(const JsonField& found) {
  return {.origin = found["origin"].text(),
          .seconds_a_message = found["seconds_a_message"].measure(),
          .seconds_a_word = found["seconds_a_word"].measure()};
}

std::vector<WordCost> words_of(const JsonField& found, const std::string& name) {
  std::vector<WordCost> words;
  for (const JsonField& entry : found.items()) {
    const auto bytes = entry.unless_null("bytes");
    words.push_back({entry["from"].text(),
                     bytes ? static_cast<std::uint64_t>(bytes->words()) : std::uint64_t{0},
                     entry["nanoseconds"].measure()});
    if (!(words.back().nanoseconds > 0) || std::isinf(words.back().nanoseconds)) {
      refuse(name, fmt::format("a word of {} takes no time above 0", words.back().from));
    }
  }
  const auto memory = std::ranges::find(words, std::uint64_t{0}, &WordCost::bytes);
  if (!words.empty() && (memory != words.end() - 1 ||
                         !std::ranges::is_sorted(words.begin(), memory, {}, &WordCost::bytes))) {
    refuse(name, "words are not those of smaller caches, larger ones, and memory");
  }
  return words;
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

// Parses the document, checks that it comes from this machine, and returns `part` of it.
template <class Part>
auto of_document(std::string_view text, const std::string& name, const Topology& topology,
                 const Part& part) {
  const Json document = [&] {
    try {
      return parse_json(text, "it");
    } catch (const JsonError& error) {
      refuse(name, error.byte ? "it is truncated, or no JSON document" : error.what());
    }
  }();
  const JsonField top(document, name,
                      "it is not what `redblue calibrate` writes: run `redblue calibrate` again");
  if (const Json& schema = top["schema"].json(); schema != kSchema) {
    refuse(name, fmt::format("it has schema {}, expected {}", in_short(schema), kSchema));
  }
  check_machine(top["context"], name, topology);
  return part(top);
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
    refuse(name, "it is not what `redblue calibrate` writes");
  }
  document["links"] = links_json(links);
  return document.document();
}

std::string to_words(const LinkCosts& links) {
  return fmt::format("links: {:.3g} s a message, {:.3g} s a word ({})", links.seconds_a_message,
                     links.seconds_a_word, links.origin);
}

CachePart calibrated_part(std::string_view text, const std::string& name,
                          const Topology& topology) {
  return of_document(text, name, topology, [&](const JsonField& document) {
    return fastest_part(document["levels"], name);
  });
}

Rates calibrated_rates(std::string_view text, const std::string& name, const Topology& topology) {
  return of_document(text, name, topology, [&](const JsonField& document) {
    if (!document.has("rates")) {
      refuse(name, "it has no rates");
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
          refuse(name, fmt::format("a rate of {} is not above 0", of.kernel));
        }
        add_sample(of, read);
      }
      if (of.samples.empty()) {
        refuse(name, fmt::format("{} has no rate", of.kernel));
      }
    }
    if (rates.kernels.empty() || rates.granule < 1) {
      refuse(name, "it has no rates");
    }
    if (document.has("word_costs")) {
      rates.words = words_of(document["word_costs"], name);
    }
    if (document.has("links")) {
      if (const auto links = document.unless_null("links")) {
        rates.links = links_of(*links);
      }
    }
    return rates;
  });
}

std::string read_calibration(const std::filesystem::path& file) {
  // Opening a pipe would wait for its other end. The caller expects a file.
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw InputError(fmt::format("{}: not a regular file; expected what `redblue calibrate` writes",
                                 file.string()));
  }
  constexpr std::size_t kMost = std::size_t{16} << 20;
  return read_text(file.string(), kMost);
}

}  // namespace redblue
