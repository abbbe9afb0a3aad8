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

// "Br=64,Bc=8": the blocks of a report as --blocks takes them.
inline std::string blocks_of(const nlohmann::json& report) {
  std::string text;
  for (const auto& [name, size] : report["blocks"].items()) {
    text += (text.empty() ? "" : ",") + name + "=" + size.dump();
  }
  return text;
}

}  // namespace redblue
