#pragma once
// The parser of all JSON that comes from outside: from files and from other processes.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/system/input_error.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

struct JsonError : InputError {
  JsonError(const std::string& message, std::optional<std::size_t> where)
      : InputError(message), byte(where) {}
  std::optional<std::size_t> byte;  // where a text stops being JSON
};

// Deeper than anything that redblue writes, and shallow enough for recursion over a value.
inline constexpr int kDeepest = 64;

enum class Comments { no, yes };
// Throws: JsonError, its message beginning with `place`, where the text is no JSON, is nested
// deeper than kDeepest, has a key twice in one object (the last one would win silently), or has a
// number beyond a double, such as 1e400.
Json parse_json(std::string_view text, const std::string& place, Comments comments = Comments::no);

// A value for a message: its JSON, shortened to a part of a line.
std::string in_short(const Json& value);

}  // namespace redblue
