#pragma once
// JSON from outside: files, and what other processes say. All of it is read here.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/system/input_error.hpp"

namespace redblue {

struct JsonError : InputError {
  JsonError(const std::string& message, std::optional<std::size_t> where)
      : InputError(message), byte(where) {}
  std::optional<std::size_t> byte;  // of a text that is no JSON: where it is none
};

// Deeper than anything that redblue writes, and shallow enough for whoever walks over it.
inline constexpr int kDeepest = 64;

enum class Comments { no, yes };
// Throws: JsonError with `place` in front: where the text is no JSON, is nested deeper than
// kDeepest, has a key twice in one object, of which the last would win, or a number such as 1e400.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& place,
                                  Comments comments = Comments::no);

// A value in a message: not longer than a part of a line.
std::string in_short(const nlohmann::ordered_json& value);

}  // namespace redblue
