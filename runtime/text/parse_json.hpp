#pragma once
// Parses JSON from files and other processes.

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
  std::optional<std::size_t> byte;  // where the text stops being JSON, for a syntax error
};

// The deepest nesting allowed. It is deeper than any document of redblue, and shallow enough for
// recursion over a value.
inline constexpr int kDeepest = 64;

enum class Comments { no, yes };
// Parses a text. Throws: JsonError, with `place` at the start of its message. The text may not be
// JSON or may be nested deeper than kDeepest. It may have a key twice in one object (the last one
// would win silently), or a number too large for a double, such as 1e400.
Json parse_json(std::string_view text, const std::string& place, Comments comments = Comments::no);

// Returns the JSON of a value, shortened for a message.
std::string in_short(const Json& value);

}  // namespace redblue
