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

// Returns "L2 cache" and "512 KiB, lines of 64 bytes, 8 ways".
Fact fact_of_cache(const JsonField& cache) {
  constexpr Index kKiB = 1024;
  const Index bytes = cache["bytes"].words();
  std::string text = bytes % kKiB == 0 ? grouped(bytes / kKiB) + " KiB" : grouped(bytes) + " bytes";
  if (const auto line = cache.unless_null("line")) {
    text += fmt::format(", lines of {} bytes", line->words());
  }
  if (const auto ways = cache.unless_null("ways")) {
    text += fmt::format(", {} ways", ways->words());
  }
  return {cache["cache"].text() + " cache", std::move(text)};
}

}  // namespace

Json build_json() {
  return {{"redblue", build_info::kVersion},
          {"compiler", build_info::kCompiler},
          {"build_type", build_info::kBuildType},
          {"system", build_info::kSystem},
          {"word", "float32"}};
}

std::vector<Fact> facts_of(const JsonField& context) {
  std::vector<Fact> facts;
  const auto add_machine = [&](const JsonField& machine) {
    std::vector<std::string> texts;
    for (const auto& [name, text] : facts_of(machine)) {
      texts.push_back(name + " " + text);
    }
    facts.emplace_back("a machine", fmt::format("{}", fmt::join(texts, "; ")));
  };
  for (const auto& [key, value] : context.members()) {
    if (key == "caches") {
      std::vector<Fact> caches;
      for (const JsonField& cache : value.items()) {
        caches.push_back(fact_of_cache(cache));
      }
      for (auto cache = caches.begin(); cache != caches.end();) {  // equal caches are neighbours
        const auto next =
            std::find_if(cache, caches.end(), [&](const Fact& f) { return f != *cache; });
        const auto equal = next - cache;
        facts.emplace_back(cache->first, equal == 1
                                             ? cache->second
                                             : fmt::format("{} of {}", equal, cache->second));
        cache = next;
      }
    } else if (key == "machines") {
      std::ranges::for_each(value.items(), add_machine);
    } else if (!value.json().is_null()) {
      std::string name = key;
      std::ranges::replace(name, '_', ' ');
      facts.emplace_back(name, value.json().is_string() ? value.text() : value.json().dump());
    }
  }
  return facts;
}

}  // namespace redblue
