#include "runtime/observe/machine_file.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/system/environment.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/build_context.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

std::string said(const std::optional<std::string>& model) {
  return model ? fmt::format("'{}'", *model) : "unknown";
}
std::string said(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{} bytes", *bytes) : "an unknown size";
}

}  // namespace

Json caches_json(const Topology& topology) {
  Json caches = Json::array();
  for (const CacheLevel level : kCacheLevels) {
    for (const Cache& cache : topology.caches[static_cast<std::size_t>(level)]) {
      caches.push_back({{"cache", to_string(level)},
                        {"bytes", cache.bytes},
                        {"line", cache.line},
                        {"ways", cache.ways},
                        {"cores", cache.cores}});
    }
  }
  return caches;
}

MachineFile::MachineFile(std::string_view text, std::string name, std::string command,
                         const Topology& topology)
    : name_(std::move(name)), command_(std::move(command)) {
  try {
    document_ = parse_json(text, "it");
  } catch (const JsonError& error) {
    refuse(error.byte ? "it is truncated, or no JSON document" : error.what());
  }
  if (const Json& schema = top()["schema"].json(); schema != kSchema) {
    refuse(fmt::format("it has schema {}, expected {}", in_short(schema), kSchema));
  }
  check_machine(topology);
}

JsonField MachineFile::top() const {
  return {document_, name_, fmt::format("it is not what `{0}` writes: run `{0}` again", command_)};
}

void MachineFile::refuse(std::string_view why) const {
  throw InputError(fmt::format("{}: {}: run `{}` again", name_, why, command_));
}

void MachineFile::check_machine(const Topology& topology) const {
  const JsonField context = top()["context"];
  std::optional<std::string> model;
  if (const auto known_model = context.unless_null("model")) {
    model = known_model->text();
  }
  if (model != topology.model) {
    refuse(fmt::format("it is of another processor: {}, and this one is {}", said(model),
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
      refuse(fmt::format("it is of another machine, whose {} has {}; here it has {}",
                         to_string(level), said(then), said(now)));
    }
  }
}

std::string read_machine_file(const std::filesystem::path& file, std::string_view command) {
  // Opening a pipe would wait for its other end. The caller expects a file.
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw InputError(
        fmt::format("{}: not a regular file; expected what `{}` writes", file.string(), command));
  }
  constexpr std::size_t kMost = std::size_t{16} << 20;
  return read_text(file.string(), kMost);
}

std::string machine_file_date() {
  const auto time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

std::optional<std::filesystem::path> machine_file_path(std::string_view name) {
  const auto path_in = [](const char* variable_name) -> std::filesystem::path {
    const char* text = variable(variable_name);
    return text == nullptr ? "" : text;
  };
  std::filesystem::path caches = path_in("XDG_CACHE_HOME");
  if (!caches.is_absolute()) {
    const std::filesystem::path home = path_in("HOME");
    if (home.empty()) {
      return std::nullopt;
    }
    caches = home / ".cache";
  }
  return caches / "redblue" / name;
}

}  // namespace redblue
