#pragma once
// The arguments of a subject as JSON.

#include <variant>

#include "runtime/gate/subject.hpp"
#include "runtime/text/json.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// Returns a JSON object with sizes as numbers and texts as strings.
inline Json arguments_json(const Arguments& arguments) {
  Json json = Json::object();
  for (const auto& [name, value] : arguments) {
    std::visit([&json = json[name]](const auto& held) { json = held; }, value);
  }
  return json;
}

// Throws: InputError.
inline Arguments arguments_of(const JsonField& field) {
  Arguments arguments;
  for (const auto& [name, value] : field.members()) {
    arguments.set(name, value.json().is_string() ? Value(value.text()) : Value(value.words()));
  }
  return arguments;
}

}  // namespace redblue
