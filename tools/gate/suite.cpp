#include "tools/gate/suite.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nearest.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/gate/own_nest.hpp"

namespace redblue {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr std::size_t kMostBytesOfSuite = kMostBytes;  // a recording can serve as a suite

std::vector<Json> as_list(const Json& json) {
  return json.is_array() ? std::vector<Json>(json.begin(), json.end()) : std::vector<Json>{json};
}

// A kernel of an entry, matched by its exact name or by a pattern.
struct Asked {
  const Subject* subject;
  bool by_name;
};

std::vector<Asked> asked_by(const Json& entry, const std::string& place,
                            const std::filesystem::path& directory,
                            const std::vector<Subject>& subjects) {
  if (!entry.contains("kernel")) {
    throw InputError(place + " has no \"kernel\"");
  }
  std::vector<Asked> found;
  for (const Json& name : as_list(entry.at("kernel"))) {
    if (!name.is_string()) {
      throw InputError(fmt::format("{}, kernel: {} is no name", place, in_short(name)));
    }
    const std::string pattern = name.get<std::string>();
    const std::size_t before = found.size();
    for (const Subject& subject : subjects) {
      if (matches(pattern, subject.name)) {
        found.push_back({&subject, pattern == subject.name});
      }
    }
    const auto is_meant = [&](const Asked& asked) {
      const std::vector<std::string>& with = asked.subject->meant_with;
      return asked.by_name || with.empty() ||
             std::ranges::any_of(with, [&](const auto& key) { return entry.contains(key); });
    };
    const auto first = found.begin() + static_cast<std::ptrdiff_t>(before);
    if (std::any_of(first, found.end(), is_meant)) {
      found.erase(std::remove_if(first, found.end(), std::not_fn(is_meant)), found.end());
    }
    if (found.size() == before) {
      try {
        found.push_back({&find_subject(subjects, pattern, directory), true});
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

// Returns a size given as a number or text. M may be in bytes, but not a share of a cache, because
// a suite must mean the same on all machines.
Index size_of(const Json& json, const std::string& place, bool is_M) {
  if (json.is_number_unsigned()) {
    const auto size = json.get<std::uint64_t>();
    if (size > 0 && size <= INT64_MAX) {
      return static_cast<Index>(size);
    }
  }
  if (!json.is_string()) {
    throw InputError(
        fmt::format("{}: {} is no size: expected one as 1000 or \"4K\"", place, in_short(json)));
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

// Returns the levels of M in one element, the innermost first: "8K,256K" becomes "8192,262144".
// Throws: InputError.
Value levels_of(const std::string& text, const std::string& place) {
  std::string levels;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = text.find(',', begin);
    const Json size = text.substr(begin, comma == std::string::npos ? comma : comma - begin);
    levels += fmt::format("{}{}", levels.empty() ? "" : ",",
                          size_of(size, fmt::format("{} '{}'", place, shortened(text)), true));
  }
  return levels;
}

// Returns the levels inside M, given as "8K", "8K,64K" or ["8K", "64K"].
Value inner_of(const Json& json, const std::string& place) {
  std::string levels;
  for (const Json& level : as_list(json)) {
    levels += (levels.empty() ? "" : ",") +
              (level.is_string() ? to_string(levels_of(level.get<std::string>(), place))
                                 : std::to_string(size_of(level, place, true)));
  }
  if (levels.empty()) {
    throw InputError(place + " is empty");
  }
  return levels;
}

bool takes_levels(const Subject& subject) {
  return std::ranges::find(subject.parameters, kInner, &Parameter::name) !=
         subject.parameters.end();
}

// Splits an M of several levels into the outermost, M, and the inner levels.
void split_levels(Arguments& arguments, const std::string& place) {
  if (!arguments.contains("M")) {
    return;
  }
  if (const std::string* all = std::get_if<std::string>(&arguments.value("M"))) {
    const std::size_t last = all->rfind(',');
    if (arguments.contains(kInner)) {
      throw InputError(fmt::format(
          "{}, {}: M is '{}', which names inner levels, too: leave one out", place, kInner, *all));
    }
    const std::string inner = all->substr(0, last);
    const Index M = std::stoll(all->substr(last + 1));
    arguments.set(std::string(kInner), inner);
    arguments.set("M", M);
  }
}

// Replaces the device of an entry by its sizes in words: M and the inner levels.
void take_device(const Subject& subject, Arguments& arguments, const std::string& place) {
  if (!arguments.contains(kDevice) || !subject.device_levels) {
    return;
  }
  Arguments others;
  others.set_directory(arguments.directory());
  for (const auto& [name, value] : arguments) {
    if (name == "M" || name == kInner) {
      throw InputError(fmt::format("{}: give either {} or {}", place, kDevice, name));
    }
    if (name != kDevice) {
      others.set(name, value);
    }
  }
  try {
    std::vector<Index> levels =
        subject.device_levels(to_string(arguments.value(kDevice)), arguments);
    others.set("M", levels.back());
    levels.pop_back();
    if (!levels.empty()) {
      others.set(std::string(kInner), fmt::format("{}", fmt::join(levels, ",")));
    }
  } catch (const UsageError& error) {
    throw InputError(fmt::format("{}, {}: {}", place, kDevice, error.what()));
  }
  arguments = std::move(others);
}

// Returns the device names of an entry.
std::vector<Value> device_names(const Json& json, const std::string& place) {
  std::vector<Value> names;
  for (const Json& name : as_list(json)) {
    if (!name.is_string()) {
      throw InputError(fmt::format("{}: {} is no name", place, in_short(name)));
    }
    names.emplace_back(name.get<std::string>());
  }
  if (names.empty()) {
    throw InputError(place + " is empty");
  }
  return names;
}

// Returns the sizes from, from * times, ... or from, from + step, ... up to `to`.
std::vector<Value> range_of(const Json& json, const std::string& place, bool is_M) {
  const bool grows = json.contains("times");
  if (json.size() != 3 || !json.contains("from") || !json.contains("to") ||
      grows == json.contains("step")) {
    throw InputError(fmt::format("{}: a range has from, to, and either times or step: {}", place,
                                 in_short(json)));
  }
  const Index from = size_of(json.at("from"), place + ", from", is_M);
  const Index to = size_of(json.at("to"), place + ", to", is_M);
  std::set<Index> sizes;
  if (grows) {
    const double times = json.at("times").is_number() ? json.at("times").get<double>() : 0;
    if (!(times >= 1.001) || !std::isfinite(times)) {
      throw InputError(
          fmt::format("{}, times: {} is no factor above 1", place, in_short(json.at("times"))));
    }
    for (auto size = static_cast<double>(from); size < static_cast<double>(to) + 0.5;
         size *= times) {
      sizes.insert(std::llround(size));
    }
  } else {
    const Index step = size_of(json.at("step"), place + ", step", is_M);
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

// Returns texts by name, given as an object or as one text.
Value named_texts_of(const Json& json, const std::string& place) {
  try {
    if (json.is_string()) {
      return to_string(parse_named_texts(json.get<std::string>()));
    }
    NamedTexts texts;
    const Json all = json.is_object() ? json : Json::object();
    for (const auto& [name, text] : all.items()) {
      if (!text.is_string()) {
        throw std::invalid_argument(
            fmt::format("{}: {} is no text", shortened(name), in_short(text)));
      }
      texts[name] = text.get<std::string>();
    }
    if (texts.empty()) {
      throw std::invalid_argument(in_short(json) +
                                  ": expected {\"NAME\": \"TEXT\"}, or \"NAME=TEXT\"");
    }
    return to_string(texts);
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("{}: {}", place, error.what()));
  }
}

std::vector<Value> values_of(const Json& json, const Parameter& parameter,
                             const std::string& place) {
  const bool is_M = parameter.name == "M";
  if (parameter.name == kInner) {
    return {inner_of(json, place)};
  }
  if (json.is_object() && !parameter.is_named) {
    return range_of(json, place, is_M);
  }
  std::vector<Value> values;
  for (const Json& value : as_list(json)) {
    if (parameter.is_named) {
      values.push_back(named_texts_of(value, place));
    } else if (parameter.words.empty() && !parameter.is_text) {
      const bool several =
          is_M && value.is_string() && value.get<std::string>().find(',') != std::string::npos;
      values.push_back(several ? levels_of(value.get<std::string>(), place)
                               : Value(size_of(value, place, is_M)));
    } else {
      values.emplace_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  if (values.empty()) {
    throw InputError(place + " is empty");
  }
  return values;
}

// Returns whether any size is in bytes, such as "64KiB".
bool in_bytes(const Json& sizes) {
  return sizes.is_string()
             ? sizes.get<std::string>().find('B') != std::string::npos
             : (sizes.is_array() || sizes.is_object()) && std::ranges::any_of(sizes, in_bytes);
}

constexpr std::string_view kAtMost = "at_most";

// Returns whether the key is not an argument of the kernel.
bool is_own(const std::string& key) {
  return key == "kernel" || key == kAtMost;
}

// Returns the budgets of an entry's points. Sizes may be texts.
std::vector<Budget> budgets_of(const Json& entry, const std::string& place) {
  if (!entry.contains(kAtMost)) {
    return {};
  }
  const Json& all = entry.at(kAtMost);
  if (!all.is_object() || all.empty()) {
    throw InputError(
        fmt::format("{}, {}: {}: expected {{\"METRIC\": MOST}}", place, kAtMost, in_short(all)));
  }
  std::vector<Budget> budgets;
  for (const auto& [name, most] : all.items()) {
    const std::string of = fmt::format("{}, {}, {}", place, kAtMost, shortened(name));
    if (!most.is_number() && !most.is_string()) {
      throw InputError(fmt::format("{}: {} is no number", of, in_short(most)));
    }
    try {
      budgets.push_back(parse_budget(name, most.is_number()
                                               ? most.get<double>()
                                               : static_cast<double>(size_of(most, of, false))));
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("{}, {}: {}", place, kAtMost, error.what()));
    }
  }
  return budgets;
}

// Returns all combinations of an entry's values. The last key varies fastest.
std::vector<Arguments> grid_of(const Json& entry, const Subject& subject,
                               const std::filesystem::path& directory, const std::string& place) {
  std::vector<Arguments> grid(1);
  grid.front().set_directory(directory);
  for (const auto& [key, json] : entry.items()) {
    if (is_own(key)) {
      continue;
    }
    const auto parameter = std::ranges::find(subject.parameters, key, &Parameter::name);
    const std::string of = fmt::format("{}, {}", place, key);
    if (key == "M" && entry.contains("word") && in_bytes(json)) {
      throw InputError(of + " is in bytes, and \"word\" is given, too: give words");
    }
    // A placeholder for an unknown parameter: complete() refuses it later.
    const std::vector<Value> values =
        key == kDevice && subject.device_levels ? device_names(json, of)
        : parameter == subject.parameters.end() ? std::vector<Value>{Value(Index{1})}
                                                : values_of(json, *parameter, of);
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
  for (Arguments& arguments : grid) {
    take_device(subject, arguments, place);
    split_levels(arguments, place);
  }
  return grid;
}

// Returns the first argument that this kernel does not take; empty if it takes all.
std::string not_taken(const Json& entry, const Subject& subject) {
  for (const auto& [key, value] : entry.items()) {
    if (!is_own(key) && key != kInner && key != kDevice &&
        std::ranges::find(subject.parameters, key, &Parameter::name) == subject.parameters.end()) {
      return key;
    }
  }
  return "";
}

// Returns the first argument with a name that this kernel does not have, such as another kernel's
// operand. Returns an empty text if all names are known.
std::string name_not_taken(const Arguments& arguments, const Subject& subject) {
  for (const Parameter& parameter : subject.parameters) {
    if (parameter.names.empty() || !arguments.contains(parameter.name)) {
      continue;
    }
    for (const auto& [name, text] : parse_named_texts(to_string(arguments.value(parameter.name)))) {
      if (std::ranges::find(parameter.names, name) == parameter.names.end()) {
        return parameter.name + " " + name;
      }
    }
  }
  return "";
}

// Kernels that a pattern matches but that do not take the entry's arguments. Leaving them out lets
// a pattern mean all kernels that do.
class LeftOut {
 public:
  void add(const std::string& argument, const std::string& kernel) {
    std::vector<std::string>& kernels = kernels_[argument];
    if (std::ranges::find(kernels, kernel) == kernels.end()) {
      kernels.push_back(kernel);
    }
  }
  // Returns "backward/flash, backward/small do not take threads as given", shortened.
  [[nodiscard]] std::string text() const {
    constexpr std::size_t kMost = 800;
    std::string text;
    for (const auto& [argument, kernels] : kernels_) {
      text += fmt::format("{}{} {} not take {} as given", text.empty() ? "" : "; ",
                          shortened(fmt::format("{}", fmt::join(kernels, ", ")), kMost / 2),
                          kernels.size() == 1 ? "does" : "do", shortened(argument));
    }
    return shortened(text, kMost);
  }

 private:
  std::map<std::string, std::vector<std::string>> kernels_;
};

// Returns the message for a kernel that does not support several levels of fast memory.
std::string one_level(const Subject& subject, const std::string& place,
                      const std::vector<Subject>& subjects) {
  std::vector<std::string> others;
  for (const Subject& other : subjects) {
    if (takes_levels(other)) {
      others.push_back(other.name);
    }
  }
  return fmt::format(
      "{}, M: {} has one level of fast memory; {}", place, subject.name,
      others.empty() ? "give one size" : fmt::format("{} have several", fmt::join(others, ", ")));
}

void add_entry(const Json& entry, const std::string& place, const std::filesystem::path& directory,
               const std::vector<Subject>& subjects, std::map<std::string, std::size_t>& known,
               std::size_t& asked, Suite& suite) {
  if (!entry.is_object()) {
    throw InputError(fmt::format("{} is no object: {}", place, in_short(entry)));
  }
  const std::vector<Budget> at_most = budgets_of(entry, place);
  LeftOut left_out;
  bool any = false;
  for (const auto& [subject, by_name] : asked_by(entry, place, directory, subjects)) {
    if (const std::string argument = not_taken(entry, *subject); !by_name && !argument.empty()) {
      left_out.add(argument, subject->name);
      continue;
    }
    const std::vector<Arguments> grid = grid_of(entry, *subject, directory, place);
    asked += grid.size();
    if (asked > kMostPoints) {
      throw InputError(fmt::format("{}: more than {} points up to here", place, kMostPoints));
    }
    for (const Arguments& arguments : grid) {
      try {
        if (const std::string named = name_not_taken(arguments, *subject);
            !by_name && !named.empty()) {
          left_out.add(named, subject->name);
          continue;
        }
        if (arguments.contains(kInner) && !takes_levels(*subject)) {
          if (by_name) {
            throw InputError(one_level(*subject, place, subjects));
          }
          left_out.add("several levels of M", subject->name);
          continue;
        }
        SuitePoint point{subject, complete(*subject, arguments), at_most};
        const std::string argument =
            by_name || !subject->declined ? "" : subject->declined(point.arguments);
        if (!argument.empty()) {
          left_out.add(argument, subject->name);
          continue;
        }
        any = true;
        const auto [same, is_new] =
            known.emplace(subject->name + " " + to_string(point.arguments), suite.points.size());
        if (is_new) {
          suite.points.push_back(std::move(point));
        } else {
          add_budgets(at_most, suite.points[same->second].at_most);
        }
      } catch (const NestMisfit&) {  // the fault is not in the suite
        throw;
      } catch (const std::invalid_argument& error) {
        throw InputError(fmt::format("{}: {}", place, error.what()));
      }
    }
  }
  if (const std::string text = left_out.text(); !text.empty()) {
    if (!any) {
      throw InputError(fmt::format("{}: no kernel is left: {}", place, text));
    }
    suite.notes.push_back(fmt::format("{}, left out: {}", place, text));
  }
}

Suite again(const Recording& recording, const std::string& file,
            const std::vector<Subject>& subjects) {
  if (recording.points.empty()) {
    throw InputError(input_name(file) + " is a part without points: there is nothing to do");
  }
  Suite suite{.how = std::string(to_string(recording.how))};
  for (const RecordedPoint& recorded : recording.points) {
    try {
      const Subject& subject = find_subject(subjects, recorded.point.subject, directory_of(file));
      Arguments arguments = recorded.point.arguments;
      arguments.set_directory(directory_of(file));
      suite.points.push_back({&subject, complete(subject, arguments), recorded.at_most,
                              recorded.accepted, suite.points.size()});
    } catch (const NestMisfit&) {
      throw;
    } catch (const std::invalid_argument& error) {
      throw InputError(fmt::format("{}: {}", input_name(file), error.what()));
    }
  }
  return suite;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name;
  }
  if (!name.starts_with(pattern.substr(0, star))) {
    return false;
  }
  // Matching each piece between two stars at its first place leaves the longest rest of the name
  // for the remaining pieces.
  std::size_t at = 0;
  do {
    name.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    at = name.find(pattern.substr(0, star));
  } while (star != std::string_view::npos && at != std::string_view::npos);
  return star == std::string_view::npos && name.ends_with(pattern);
}

std::filesystem::path directory_of(const std::string& file) {
  return is_standard_input(file) ? std::filesystem::path()
                                 : std::filesystem::path(file).parent_path();
}

namespace {

FindSubject& more_subjects() {
  static FindSubject find;
  return find;
}

}  // namespace

void find_more_subjects(FindSubject find) {
  more_subjects() = std::move(find);
}

const Subject& find_subject(const std::vector<Subject>& subjects, const std::string& name,
                            const std::filesystem::path& directory) {
  const auto found = std::ranges::find(subjects, name, &Subject::name);
  if (found == subjects.end()) {
    if (const Subject* more = more_subjects() ? more_subjects()(name, directory) : nullptr) {
      return *more;
    }
    const std::vector<std::string_view> names = [&] {
      std::vector<std::string_view> all;
      for (const Subject& subject : subjects) {
        all.push_back(subject.name);
      }
      return all;
    }();
    throw std::invalid_argument(fmt::format("no kernel is called '{}': did you mean {}?",
                                            shortened(name),
                                            fmt::join(nearest(name, names), " or ")));
  }
  return *found;
}

Suite read_suite(const std::string& file, const std::vector<Subject>& subjects,
                 const std::vector<std::string>& hows) {
  const std::string text = read_text(file, kMostBytesOfSuite);
  const std::string path = input_name(file);
  if (!is_utf8(text)) {  // also covers comments, which the parser skips but a sweep keeps
    throw InputError(path + " is not UTF-8");
  }
  const Json document = parse_json(text, path, Comments::yes);
  if (!document.is_object()) {
    throw InputError(path + " is no suite: expected {\"points\": [...]}");
  }
  if (document.contains("redblue")) {
    Suite suite = again(parse_recording(text, path), file, subjects);
    suite.text = text;
    return suite;
  }
  for (const auto& [key, value] : document.items()) {
    if (key != "how" && key != "points") {
      throw InputError(
          fmt::format("{}: {}: a suite has \"how\" and \"points\"", path, in_short(key)));
    }
  }
  Suite suite{.how = hows.front(), .text = text};
  if (document.contains("how")) {
    const Json& how = document.at("how");
    if (std::ranges::none_of(hows, [&](const std::string& known) { return how == known; })) {
      throw InputError(
          fmt::format("{}, how: {}: expected {}", path, in_short(how), fmt::join(hows, " or ")));
    }
    suite.how = how.get<std::string>();
  }
  if (!document.contains("points") || !document.at("points").is_array()) {
    throw InputError(path + " has no \"points\": a list of entries");
  }
  if (document.at("points").empty()) {
    throw InputError(path + " has an empty list of \"points\": there is nothing to do");
  }
  std::map<std::string, std::size_t> known;
  std::size_t k = 0;
  std::size_t asked = 0;
  for (const Json& entry : document.at("points")) {
    const std::size_t before = suite.points.size();
    add_entry(entry, fmt::format("{}, points {}", path, k + 1), directory_of(file), subjects, known,
              asked, suite);
    for (std::size_t point = before; point < suite.points.size(); ++point) {
      suite.points[point].entry = k;
    }
    ++k;
  }
  return suite;
}

}  // namespace redblue
