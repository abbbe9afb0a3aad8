#include "runtime/observe/devices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr auto kWordBytes = Index{sizeof(float)};
constexpr std::size_t kMostBytesOfDevice = std::size_t{1} << 20;

constexpr std::string_view kThisMachine = "this";
constexpr std::array<std::string_view, 5> kDeviceKeys = {"name", "source", "levels",
                                                         "flops_per_second", "exps_per_second"};
constexpr std::array<std::string_view, 7> kLevelKeys = {
    "name",      "bytes", "line_bytes", "bandwidth_bytes_per_second", "joules_per_word",
    "shared_by", "source"};

// A JSON object of a device file. `place` begins its messages: "a.json, level 2".
class ReadObject {
 public:
  // All functions throw InputError.
  ReadObject(const Json& json, std::string place, std::span<const std::string_view> keys)
      : json_(json), place_(std::move(place)) {
    if (!json.is_object()) {
      throw InputError(fmt::format("{}: {} is no object: expected one with {}", place_,
                                   in_short(json), fmt::join(keys, ", ")));
    }
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(keys, key) == keys.end()) {
        throw InputError(fmt::format("{}: '{}' is no key of it: expected {}", place_,
                                     shortened(key), fmt::join(keys, ", ")));
      }
    }
  }

  [[nodiscard]] const std::string& place() const { return place_; }
  void call(const std::string& name) { place_ += fmt::format(" ({})", shortened(name)); }

  [[nodiscard]] const Json& at(std::string_view key) const {
    if (!json_.contains(key)) {
      throw InputError(fmt::format("{} has no \"{}\"", place_, key));
    }
    return json_.at(key);
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    const Json& value = at(key);
    if (!value.is_string() || value.get<std::string>().empty()) {
      refuse(key, "no text", "expected one in quotes, not empty");
    }
    return value.get<std::string>();
  }
  [[nodiscard]] std::optional<std::string> text_if_any(std::string_view key) const {
    return json_.contains(key) ? std::optional(text(key)) : std::nullopt;
  }
  [[nodiscard]] Index whole(std::string_view key, Index unit = 1) const {
    const Json& value = at(key);
    const bool whole = value.is_integer() && value.is_number_unsigned();
    const std::uint64_t number = whole ? value.get<std::uint64_t>() : 0;
    if (number == 0 || number > INT64_MAX || number % static_cast<std::uint64_t>(unit) != 0) {
      refuse(key, "no size",
             unit == 1 ? "expected a whole number above 0, as 64"
                       : "expected whole words of 4 bytes, as 32768");
    }
    return static_cast<Index>(number);
  }
  [[nodiscard]] std::optional<Index> whole_if_any(std::string_view key) const {
    return json_.contains(key) ? std::optional(whole(key)) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> figure_if_any(std::string_view key) const {
    if (!json_.contains(key)) {
      return std::nullopt;
    }
    const Json& value = at(key);
    const double number = value.is_number() ? value.get<double>() : 0;
    if (!(number > 0)) {  // JSON has neither NaN nor infinity
      refuse(key, "no figure", "expected a number above 0, as 2e11, or no such key");
    }
    return number;
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view what,
                           std::string_view expected) const {
    throw InputError(
        fmt::format("{}, {}: {} is {}: {}", place_, key, in_short(at(key)), what, expected));
  }

  const Json& json_;
  std::string place_;
};

DeviceLevel level_of(const Json& json, const std::string& place) {
  ReadObject object(json, place, kLevelKeys);
  DeviceLevel level{.name = object.text("name")};
  object.call(level.name);
  level.bytes = object.whole("bytes", kWordBytes);
  level.line_bytes = object.whole_if_any("line_bytes");
  level.bytes_per_second = object.figure_if_any("bandwidth_bytes_per_second");
  level.joules_per_word = object.figure_if_any("joules_per_word");
  level.shared_by = object.whole_if_any("shared_by");
  level.source = object.text_if_any("source").value_or("");
  if (level.line_bytes && *level.line_bytes > level.bytes) {
    throw InputError(fmt::format("{}, line_bytes: {} is more than its {} bytes", object.place(),
                                 *level.line_bytes, level.bytes));
  }
  return level;
}

// Throws: InputError if the levels do not grow from the first to the last, or share a name.
void check_levels(const std::vector<DeviceLevel>& levels, const std::string& place) {
  for (std::size_t k = 1; k < levels.size(); ++k) {
    const DeviceLevel &inner = levels[k - 1], &outer = levels[k];
    if (outer.bytes <= inner.bytes) {
      throw InputError(fmt::format(
          "{}, level {} ({}): {} bytes are not more than the {} of level {} ({}): "
          "levels are listed from the inner out, each larger than the one before",
          place, k + 1, shortened(outer.name), outer.bytes, inner.bytes, k, shortened(inner.name)));
    }
    const auto before = levels.begin() + static_cast<std::ptrdiff_t>(k);
    if (std::find_if(levels.begin(), before, [&](const DeviceLevel& other) {
          return other.name == outer.name;
        }) != before) {
      throw InputError(fmt::format("{}, level {}: {} is the name of a level before it", place,
                                   k + 1, shortened(outer.name)));
    }
  }
}

}  // namespace

Index DeviceLevel::words(Index workers) const {
  return bytes / kWordBytes / std::min(workers, shared_by.value_or(1));
}

Device parse_device(std::string_view text, const std::string& place) {
  const Json json = parse_json(text, place, Comments::yes);
  const ReadObject object(json, place, kDeviceKeys);
  Device device{.name = object.text("name"),
                .source = object.text("source"),
                .flops_per_second = object.figure_if_any("flops_per_second"),
                .exps_per_second = object.figure_if_any("exps_per_second")};
  const Json& levels = object.at("levels");
  if (!levels.is_array() || levels.empty()) {
    throw InputError(
        fmt::format("{}, levels: {} is no list of levels: expected [{{\"name\": "
                    "\"L1\", \"bytes\": 32768}}, ...]",
                    place, in_short(levels)));
  }
  for (const Json& level : levels) {
    device.levels.push_back(
        level_of(level, fmt::format("{}, level {}", place, device.levels.size() + 1)));
  }
  check_levels(device.levels, place);
  return device;
}

Device read_device(const std::string& path) {
  Device device = parse_device(read_text(path, kMostBytesOfDevice), path);
  device.file = path;
  return device;
}

Device device_of(const Topology& topology) {
  Device device{.name = std::string(kThisMachine),
                .source = topology.model ? fmt::format("{} ({})", *topology.model, topology.source)
                                         : topology.source};
  for (const CacheLevel level : kCacheLevels) {
    if (const Cache* cache = topology.cache(level)) {
      const auto cores = static_cast<Index>(cache->cores.size());
      device.levels.push_back({.name = std::string(to_string(level)),
                               .bytes = static_cast<Index>(cache->bytes) / kWordBytes * kWordBytes,
                               .line_bytes = cache->line,
                               .shared_by = cores > 0 ? std::optional(cores) : std::nullopt});
    }
  }
  check_levels(device.levels, "the caches of " + topology.source);
  return device;
}

bool is_this_machine(const Device& device) {
  return device.file.empty() && device.name == kThisMachine;
}

const std::vector<Device>& devices() {
  static const std::vector<Device> all = [] {
    std::vector<Device> known;
    for (const auto& [name, text] : known_device_files()) {
      known.push_back(parse_device(text, name));
    }
    std::ranges::stable_sort(known, {}, [](const Device& of) { return of.levels.back().bytes; });
    return known;
  }();
  return all;
}

}  // namespace redblue
