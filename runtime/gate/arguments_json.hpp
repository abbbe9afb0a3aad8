#pragma once

#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/gate/subject.hpp"

namespace redblue {

// An object: sizes are numbers, words are strings.
inline nlohmann::ordered_json arguments_json(const Arguments& arguments) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : arguments) {
    std::visit([&json = json[name]](const auto& held) { json = held; }, value);
  }
  return json;
}

}  // namespace redblue
