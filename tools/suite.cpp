#include "tools/suite.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/nearest.hpp"
#include "tools/sizes.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 100'000;

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name;
  }
  const std::string_view rest = pattern.substr(star + 1);
  if (!name.starts_with(pattern.substr(0, star))) {
    return false;
  }
  for (std::size_t from = star; from <= name.size(); ++from) {
    if (matches(rest, name.substr(from))) {
      return true;
    }
  }
  return false;
}

std::vector<Json> as_list(const Json& json) {
  return json.is_array() ? json.get<std::vector<Json>>() : std::vector<Json>{json};
}

std::vector<const Subject*> subjects_of(const Json& entry, const std::string& place,
                                        const std::vector<Subject>& subjects) {
  if (!entry.contains("kernel")) {
    throw InputError(place + " has no \"kernel\"");
  }
  std::vector<const Subject*> found;
  for (const Json& name : as_list(entry["kernel"])) {
    if (!name.is_string()) {
      throw InputError(fmt::format("{}, kernel: {} is no name", place, name.dump()));
    }
    const std::string pattern = name.get<std::string>();
    const std::size_t before = found.size();
    for (const Subject& subject : subjects) {
      if (matches(pattern, subject.name)) {
        found.push_back(&subject);
      }
    }
    if (found.size() == before) {
      try {
        find_subject(subjects, pattern);
      } catch (const std::invalid_argument& unknown) {
        throw InputError(fmt::format("{}: {}", place, unknown.what()));
      }
    }
  }
  if (found.empty()) {
    throw InputError(place + ", kernel is empty");
  }
  return found;
}

// A size as a number or as text. M may be in bytes, but no cache's: a suite is for all machines.
Index size_of(const Json& json, const std::string& place, bool is_M) {
  if (json.is_number_unsigned() && json > 0 && json.get<std::uint64_t>() <= INT64_MAX) {
    return json.get<Index>();
  }
  if (!json.is_string()) {
    throw InputError(
        fmt::format("{}: {} is no size: expected one as 1000 or \"4K\"", place, json.dump()));
  }
  try {
    const std::string text = json.get<std::string>();
    if (!is_M) {
      return parse_size(text, place);
    }
    const FastMemory memory = parse_fast_memory(text, place);
    if (const Index* words = std::get_if<Index>(&memory)) {
      return *words;
    }
    throw InputError(
        fmt::format("{} '{}': a suite is for every machine: give words, or bytes", place, text));
  } catch (const UsageError& error) {
    throw InputError(error.what());
  }
}

// From, from * times, ... or from, from + step, ... to the last that is not beyond.
std::vector<Value> range_of(const Json& json, const std::string& place, bool is_M) {
  const bool grows = json.contains("times");
  if (json.size() != 3 || !json.contains("from") || !json.contains("to") ||
      grows == json.contains("step")) {
    throw InputError(
        fmt::format("{}: a range has from, to, and either times or step: {}", place, json.dump()));
  }
  const Index from = size_of(json["from"], place + ", from", is_M);
  const Index to = size_of(json["to"], place + ", to", is_M);
  std::set<Index> sizes;
  if (grows) {
    const double times = json["times"].is_number() ? json["times"].get<double>() : 0;
    if (!(times >= 1.001) || !std::isfinite(times)) {
      throw InputError(
          fmt::format("{}, times: {} is no factor above 1", place, json["times"].dump()));
    }
    for (auto size = static_cast<double>(from); size < static_cast<double>(to) + 0.5;
         size *= times) {
      sizes.insert(std::llround(size));
    }
  } else {
    const Index step = size_of(json["step"], place + ", step", is_M);
    if ((to - from) / step >= static_cast<Index>(kMostPoints)) {
      throw InputError(fmt::format("{}: a range of more than {} sizes", place, kMostPoints));
    }
    for (Index k = 0; from <= to && k <= (to - from) / step; ++k) {
      sizes.insert(from + k * step);
    }
  }
  if (sizes.empty()) {
    throw InputError(fmt::format("{}: nothing is from {} to {}", place, from, to));
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<Value> values_of(const Json& json, const Parameter& parameter,
                             const std::string& place) {
  const bool is_M = parameter.name == "M";
  if (json.is_object()) {
    return range_of(json, place, is_M);
  }
  std::vector<Value> values;
  for (const Json& value : as_list(json)) {
    if (parameter.words.empty()) {
      values.emplace_back(size_of(value, place, is_M));
    } else {
      values.emplace_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  if (values.empty()) {
    throw InputError(place + " is empty");
  }
  return values;
}

// All combinations of an entry's values, the last key's fastest.
std::vector<Arguments> grid_of(const Json& entry, const Subject& subject,
                               const std::string& place) {
  std::vector<Arguments> grid(1);
  for (const auto& [key, json] : entry.items()) {
    if (key == "kernel") {
      continue;
    }
    const auto parameter = std::ranges::find(subject.parameters, key, &Parameter::name);
    // complete() has a word for one that there is not.
    const std::vector<Value> values =
        parameter == subject.parameters.end()
            ? std::vector<Value>{Value(Index{1})}
            : values_of(json, *parameter, fmt::format("{}, {}", place, key));
    if (grid.size() * values.size() > kMostPoints) {
      throw InputError(fmt::format("{} has more than {} points", place, kMostPoints));
    }
    std::vector<Arguments> larger;
    for (const Arguments& arguments : grid) {
      for (const Value& value : values) {
        larger.push_back(arguments);
        larger.back().set(key, value);
      }
    }
    grid = std::move(larger);
  }
  return grid;
}

void add_entry(const Json& entry, const std::string& place, const std::vector<Subject>& subjects,
               std::set<std::string>& known, Suite& suite) {
  if (!entry.is_object()) {
    throw InputError(fmt::format("{} is no object: {}", place, entry.dump()));
  }
  for (const Subject* subject : subjects_of(entry, place, subjects)) {
    for (const Arguments& arguments : grid_of(entry, *subject, place)) {
      try {
        SuitePoint point{subject, complete(*subject, arguments)};
        if (known.insert(subject->name + " " + to_string(point.arguments)).second) {
          suite.points.push_back(std::move(point));
        }
      } catch (const std::invalid_argument& error) {
        throw InputError(fmt::format("{}: {}", place, error.what()));
      }
    }
  }
}

Json parse(const std::string& text, const std::string& path) {
  try {
    // Of two with one name the parser would keep the last.
    std::vector<std::set<std::string>> keys;
    const auto once = [&](int, Json::parse_event_t event, const Json& parsed) {
      if (event == Json::parse_event_t::object_start) {
        keys.emplace_back();
      } else if (event == Json::parse_event_t::object_end) {
        keys.pop_back();
      } else if (event == Json::parse_event_t::key &&
                 !keys.back().insert(parsed.get<std::string>()).second) {
        throw InputError(fmt::format("{}: {} is there twice in one object", path, parsed.dump()));
      }
      return true;
    };
    constexpr bool kThrows = true;
    constexpr bool kComments = true;
    return Json::parse(text, once, kThrows, kComments);
  } catch (const Json::parse_error& error) {
    const std::string_view what = error.what();  // "[json...101] parse error at line 3, column 5: "
    const std::size_t at = what.find("line ");
    throw InputError(
        fmt::format("{}, {}", path, at == std::string_view::npos ? what : what.substr(at)));
  } catch (const Json::out_of_range&) {  // 1e400
    throw InputError(path + " has a number that no machine holds");
  }
}

Suite again(const Recording& recording, const std::string& path,
            const std::vector<Subject>& subjects) {
  Suite suite{.how = std::string(to_string(recording.how)), .points = {}};
  for (const Recorded& recorded : recording.points) {
    try {
      const Subject& subject = find_subject(subjects, recorded.point.subject);
      suite.points.push_back({&subject, complete(subject, recorded.point.arguments)});
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("{}: {}", path, error.what()));
    }
  }
  return suite;
}

}  // namespace

std::string read_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // Not by its buffer, which throws what names no file.
  for (char part[4096]; file.read(part, sizeof part), file.gcount() > 0;) {
    text.append(part, static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(),
                            fmt::format("cannot read '{}'", path));
  }
  return text;
}

const Subject& find_subject(const std::vector<Subject>& subjects, const std::string& name) {
  const auto found = std::ranges::find(subjects, name, &Subject::name);
  if (found == subjects.end()) {
    const std::vector<std::string_view> names = [&] {
      std::vector<std::string_view> all;
      for (const Subject& subject : subjects) {
        all.push_back(subject.name);
      }
      return all;
    }();
    throw std::invalid_argument(fmt::format("no kernel is called '{}': did you mean {}?", name,
                                            fmt::join(nearest(name, names), " or ")));
  }
  return *found;
}

// Comments, too, which the parser does not look at: a sweep keeps the text.
void check_utf8(const std::string& text, const std::string& path) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::type_error&) {
    throw InputError(path + " is not UTF-8");
  }
}

Suite read_suite(const std::string& path, const std::vector<Subject>& subjects,
                 const std::vector<std::string>& hows) {
  const std::string text = read_text(path);
  check_utf8(text, path);
  const Json document = parse(text, path);
  if (!document.is_object()) {
    throw InputError(path + " is no suite: expected {\"points\": [...]}");
  }
  if (document.contains("redblue")) {
    Suite suite = again(parse_recording(text, path), path, subjects);
    suite.text = text;
    return suite;
  }
  for (const auto& [key, value] : document.items()) {
    if (key != "how" && key != "points") {
      throw InputError(fmt::format("{}: \"{}\": a suite has \"how\" and \"points\"", path, key));
    }
  }
  Suite suite{.how = hows.front(), .points = {}, .text = text};
  if (document.contains("how")) {
    const Json& how = document["how"];
    if (std::ranges::none_of(hows, [&](const std::string& known) { return how == known; })) {
      throw InputError(
          fmt::format("{}, how: {}: expected {}", path, how.dump(), fmt::join(hows, " or ")));
    }
    suite.how = how.get<std::string>();
  }
  if (!document.contains("points") || !document["points"].is_array() ||
      document["points"].empty()) {
    throw InputError(path + " has no \"points\": a list of entries");
  }
  std::set<std::string> known;
  std::size_t k = 0;
  for (const Json& entry : document["points"]) {
    add_entry(entry, fmt::format("{}, points {}", path, ++k), subjects, known, suite);
  }
  return suite;
}

}  // namespace redblue
