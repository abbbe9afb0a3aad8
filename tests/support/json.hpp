#pragma once
// Reads the JSON that the command prints.

#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace redblue {

// Tests read redblue's output with the library's own type, not with redblue::Json.
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

// Returns the blocks of a report in the form that --blocks takes: "Br=64,Bc=8".
inline std::string blocks_of(const nlohmann::json& report) {
  std::string text;
  for (const auto& [name, size] : report["blocks"].items()) {
    text += (text.empty() ? "" : ",") + name + "=" + size.dump();
  }
  return text;
}

}  // namespace redblue
