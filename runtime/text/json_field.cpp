#include "runtime/text/json_field.hpp"

#include <fmt/format.h>

#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

JsonField JsonField::operator[](std::string_view key) const {
  if (!has(key)) {
    throw InputError(
        fmt::format("{} has no \"{}\"{}", place_, key, remedy_.empty() ? "" : ": " + remedy_));
  }
  return inside(json_.at(key), fmt::format(", {}", key));
}

JsonField JsonField::inside(const Json& json, std::string_view name) const {
  return {json, fmt::format("{}{}", place_, name), remedy_};
}

std::optional<JsonField> JsonField::unless_null(std::string_view key) const {
  const JsonField field = (*this)[key];
  return field.json().is_null() ? std::nullopt : std::optional<JsonField>(field);
}

std::vector<JsonField> JsonField::items(std::optional<std::size_t> count) const {
  expect(json_.is_array(), "is no list");
  if (count && json_.size() != *count) {
    refuse(fmt::format("has {} elements, not {}", json_.size(), *count));
  }
  std::vector<JsonField> items;
  for (std::size_t k = 0; k < json_.size(); ++k) {
    items.push_back(inside(json_.at(k), fmt::format(" {}", k + 1)));
  }
  return items;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  expect(json_.is_object(), "is no object");
  std::vector<std::pair<std::string, JsonField>> members;
  for (const auto& [name, value] : json_.items()) {
    members.emplace_back(name, inside(value, ", " + shortened(name)));
  }
  return members;
}

std::string JsonField::text() const {
  expect(json_.is_string(), "is no text");
  return json_.get<std::string>();
}

bool JsonField::yes() const {
  expect(json_.is_boolean(), "is neither true nor false");
  return json_.get<bool>();
}

Index JsonField::words(Index most) const {
  expect(json_.is_number_unsigned() && json_.get<std::uint64_t>() <= std::uint64_t{INT64_MAX},
         "is no number of words");
  const auto words = json_.get<Index>();
  expect(words <= most, fmt::format("is no number of at most {}", most));
  return words;
}

Index JsonField::size() const {
  expect(json_.is_number_unsigned() && json_.get<std::uint64_t>() <= std::uint64_t{INT64_MAX} &&
             json_.get<Index>() > 0,
         "is no whole number of at least 1");
  return json_.get<Index>();
}

double JsonField::measure() const {
  expect(json_.is_number() && json_.get<double>() >= 0, "is no number of at least 0");
  return json_.get<double>();
}

std::map<std::string, std::string> JsonField::texts() const {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : members()) {
    texts[name] = value.text();
  }
  return texts;
}

void JsonField::refuse(std::string_view why) const {
  throw InputError(fmt::format("{} {}: {}{}", place_, why, in_short(json_),
                               remedy_.empty() ? "" : ": " + remedy_));
}

}  // namespace redblue
