#pragma once

#include <variant>

#include "runtime/gate/subject.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// Sizes as numbers, words as text.
inline Json arguments_json(const Arguments& arguments) {
  Json json = Json::object();
  for (const auto& [name, value] : arguments) {
    std::visit([&json = json[name]](const auto& held) { json = held; }, value);
  }
  return json;
}

}  // namespace redblue
