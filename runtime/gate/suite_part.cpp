#include "runtime/gate/suite_part.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/gate/suite_origin_json.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// Returns the parts that should have the missing points: " of part 2/4, 3/4". Empty if the existing
// parts divide the suite differently.
std::string parts_of(const std::set<std::size_t>& missing, const std::vector<PartThere>& parts) {
  const std::size_t of = parts.front().part.of;
  if (of == 1 ||
      std::ranges::any_of(parts, [&](const PartThere& there) { return there.part.of != of; })) {
    return "";
  }
  std::set<std::size_t> numbers;
  for (const std::size_t k : missing) {
    numbers.insert(k % of + 1);
  }
  std::vector<std::string> texts;
  for (const std::size_t number : numbers) {
    texts.push_back(to_string(SuitePart{number, of}));
  }
  return fmt::format(", of part {}", fmt::join(texts, ", "));
}

}  // namespace

std::string to_string(const SuitePart& part) {
  return fmt::format("{}/{}", part.number, part.of);
}

std::vector<std::size_t> points_of(const SuitePart& part, std::size_t count) {
  std::vector<std::size_t> points;
  for (std::size_t k = 0; k < count; ++k) {
    if (part.has(k)) {
      points.push_back(k);
    }
  }
  return points;
}

std::optional<SuitePart> parse_part(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = parse_number(text.substr(0, slash));
  const auto of = parse_number(text.substr(slash + 1));
  return number && of && 1 <= *number && *number <= *of ? std::optional(SuitePart{*number, *of})
                                                        : std::nullopt;
}

Json to_json(const SuiteOrigin& origin) {
  Json files = Json::object();
  for (const auto& [point, fingerprints] : origin.files) {
    files[point] = fingerprints;
  }
  Json json = {{"how", origin.how}};
  if (!origin.suite.empty()) {
    json["suite"] = origin.suite;
  }
  json.update({{"program", origin.program}, {"files", std::move(files)}});
  if (!origin.at_most.empty()) {
    json["at_most"] = origin.at_most;
  }
  json["points"] = origin.points;
  return json;
}

SuiteOrigin origin_of(const JsonField& field) {
  SuiteOrigin origin{.how = field["how"].text(),
                     .suite = field.has("suite") ? field["suite"].text() : "",
                     .program = field["program"].text()};
  for (const auto& [point, fingerprints] : field["files"].members()) {
    origin.files[point] = fingerprints.texts();
  }
  if (field.has("at_most")) {
    origin.at_most = field["at_most"].texts();
  }
  for (const JsonField& point : field["points"].items()) {
    origin.points.push_back(point.text());
  }
  return origin;
}

std::string differing(const SuiteOrigin& a, const SuiteOrigin& b) {
  if (a.how != b.how || a.suite != b.suite) {
    return "suite";
  }
  if (a.program != b.program) {
    return "build of redblue";
  }
  if (a.points != b.points) {
    return "suite";
  }
  if (a.at_most != b.at_most) {
    return "at_most";
  }
  return a.files == b.files ? "" : "file that a point names";
}

std::vector<std::vector<std::size_t>> holders_of(const std::vector<PartThere>& parts) {
  const PartThere& first = parts.front();
  std::map<std::string_view, std::size_t> index;
  for (std::size_t k = 0; k < first.origin.points.size(); ++k) {
    index.emplace(first.origin.points[k], k);
  }
  std::vector<std::vector<std::size_t>> holders(first.origin.points.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (const std::string what = differing(first.origin, parts[p].origin); !what.empty()) {
      throw InputError(fmt::format("{} and {} are no parts of one whole: the {} of one is another",
                                   first.name, parts[p].name, what));
    }
    for (const std::string& point : parts[p].points) {
      const auto found = index.find(point);
      if (found == index.end()) {
        throw InputError(
            fmt::format("{} has a point that is not of its suite: {}", parts[p].name, point));
      }
      holders[found->second].push_back(p);
    }
  }
  return holders;
}

MissingPoints missing_points(const std::vector<PartThere>& parts,
                             const std::vector<std::vector<std::size_t>>& holders) {
  constexpr std::size_t kNamed = 10;
  MissingPoints missing;
  std::set<std::size_t> indices;
  for (std::size_t k = 0; k < holders.size(); ++k) {
    if (holders[k].empty()) {
      indices.insert(k);
      missing.names.push_back(parts.front().origin.points[k]);
    }
  }
  if (!missing.names.empty()) {
    const std::size_t named = std::min(missing.names.size(), kNamed);
    missing.text = fmt::format(
        "{} of {} {} missing{}: {}{}", missing.names.size(), counted(std::ssize(holders), "point"),
        missing.names.size() == 1 ? "is" : "are", parts_of(indices, parts),
        fmt::join(missing.names.begin(), missing.names.begin() + static_cast<std::ptrdiff_t>(named),
                  "; "),
        named < missing.names.size() ? fmt::format("; and {} more", missing.names.size() - named)
                                     : "");
  }
  return missing;
}

}  // namespace redblue
