#include "runtime/text/build_context.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "memsim/words.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Fact = std::pair<std::string, std::string>;

// "L2 cache", "512 KiB, lines of 64 bytes, 8 ways"
Fact fact_of_cache(const Json& cache) {
  constexpr Index kKiB = 1024;
  const auto bytes = cache.at("bytes").get<Index>();
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

Json build_json() {
  return {{"redblue", build_info::kVersion},
          {"compiler", build_info::kCompiler},
          {"build_type", build_info::kBuildType},
          {"system", build_info::kSystem},
          {"word", "float32"}};
}

std::vector<Fact> facts_of(const Json& context) {
  std::vector<Fact> facts;
  const auto add_machine = [&](const Json& machine) {
    std::vector<std::string> texts;
    for (const auto& [name, text] : facts_of(machine)) {
      texts.push_back(name + " " + text);
    }
    facts.emplace_back("a machine", fmt::format("{}", fmt::join(texts, "; ")));
  };
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
    } else if (key == "machines") {
      std::ranges::for_each(value, add_machine);
    } else if (!value.is_null()) {
      std::string name = key;
      std::ranges::replace(name, '_', ' ');
      facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return facts;
}

}  // namespace redblue
