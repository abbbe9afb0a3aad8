#include "runtime/report/context.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/system/build_info.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Fact = std::pair<std::string, std::string>;

// "L2 cache", "512 KiB, lines of 64 bytes, 8 ways"
Fact fact_of_cache(const nlohmann::ordered_json& cache) {
  constexpr Index kKiB = 1024;
  const Index bytes = cache.at("bytes");
  std::string text = bytes % kKiB == 0 ? grouped(bytes / kKiB) + " KiB" : grouped(bytes) + " bytes";
  if (const auto& line = cache.at("line"); !line.is_null()) {
    text += fmt::format(", lines of {} bytes", line.get<Index>());
  }
  if (const auto& ways = cache.at("ways"); !ways.is_null()) {
    text += fmt::format(", {} ways", ways.get<Index>());
  }
  return {cache.at("cache").get<std::string>() + " cache", std::move(text)};
}

}  // namespace

nlohmann::ordered_json context_json(const std::optional<FastMemoryOrigin>& M_from) {
  nlohmann::ordered_json context = {{"redblue", build_info::kVersion},
                                    {"compiler", build_info::kCompiler},
                                    {"build_type", build_info::kBuildType},
                                    {"system", build_info::kSystem},
                                    {"word", "float32"}};
  if (M_from) {
    context["M_from"] = {{"text", M_from->text},       {"cache", to_string(M_from->part.level)},
                         {"bytes", M_from->bytes},     {"share", M_from->part.share},
                         {"sharers", M_from->sharers}, {"source", M_from->source}};
    if (M_from->file) {
      context["M_from"]["file"] = *M_from->file;
    }
  }
  return context;
}

nlohmann::ordered_json task_json(const Task& task, const std::optional<FastMemoryOrigin>& M_from) {
  nlohmann::ordered_json json = {{"schema", kSchema},
                                 {"context", context_json(M_from)},
                                 {"problem", to_string(task.pass)},
                                 {"n", task.shape.n},
                                 {"m", task.shape.m},
                                 {"d", task.shape.d},
                                 {"M", task.M}};
  if (task.pass != Pass::product) {
    json["sharing"] = to_string(task.sharing);
  }
  if (task.pass == Pass::backward) {
    json["given"] = to_string(task.known);
  }
  return json;
}

nlohmann::ordered_json bound_json(const Bound& bound) {
  return {{"words", bound.words}, {"term", bound.name}, {"status", to_string(bound.status)}};
}

nlohmann::ordered_json caches_json(const Topology& topology) {
  nlohmann::ordered_json caches = nlohmann::ordered_json::array();
  for (const CacheLevel level : kCacheLevels) {
    for (const Cache& cache : topology.caches[static_cast<std::size_t>(level)]) {
      caches.push_back({{"cache", to_string(level)},
                        {"bytes", cache.bytes},
                        {"line", known(cache.line)},
                        {"ways", known(cache.ways)},
                        {"cores", cache.cores}});
    }
  }
  return caches;
}

std::vector<Fact> facts_of(const nlohmann::ordered_json& context) {
  std::vector<Fact> facts;
  for (const auto& [key, value] : context.items()) {
    if (key == "caches") {
      std::vector<Fact> caches;
      for (const auto& cache : value) {
        caches.push_back(fact_of_cache(cache));
      }
      for (auto cache = caches.begin(); cache != caches.end();) {  // equal ones are neighbours
        const auto next =
            std::find_if(cache, caches.end(), [&](const Fact& f) { return f != *cache; });
        const auto equal = next - cache;
        facts.emplace_back(cache->first, equal == 1
                                             ? cache->second
                                             : fmt::format("{} of {}", equal, cache->second));
        cache = next;
      }
    } else if (!value.is_null()) {
      std::string name = key;
      std::ranges::replace(name, '_', ' ');
      facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return facts;
}

std::string to_words(const FastMemoryOrigin& M_from) {
  const std::string_view cache = to_string(M_from.part.level);
  return fmt::format(
      "M is {}{}{}: {} has {} bytes ({})", M_from.text,
      M_from.file ? fmt::format(", that is {}*{} by {}", cache, M_from.part.share, *M_from.file)
                  : std::string(),
      M_from.sharers > 1 ? fmt::format(", divided by {} workers", M_from.sharers) : std::string(),
      cache, grouped(static_cast<Index>(M_from.bytes)), M_from.source);
}

}  // namespace redblue
