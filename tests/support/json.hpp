#pragma once
// The JSON that the command prints, and its keys.

#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace redblue {

// Tests read what redblue writes with the library's own type, not with redblue::Json.
namespace {
using Json = nlohmann::json;
}
using Keys = std::set<std::string>;

inline Keys keys(const nlohmann::json& object) {
  Keys found;
  for (const auto& item : object.items()) {
    found.insert(item.key());
  }
  return found;
}

}  // namespace redblue
