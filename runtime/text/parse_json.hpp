#pragma once
// The parser of JSON from outside: from files and other processes.

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
  std::optional<std::size_t> byte;  // the end of what is JSON, of a text that is not
};

// Deeper than any document of redblue, and shallow enough for recursion over a value.
inline constexpr int kDeepest = 64;

enum class Comments { no, yes };
// Throws: JsonError, with `place` at the beginning of its message, if the text is not JSON, is
// nested deeper than kDeepest, has a key twice in one object (the last one would win silently) or a
// number beyond a double, such as 1e400.
Json parse_json(std::string_view text, const std::string& place, Comments comments = Comments::no);

// The JSON of a value, shortened for a message.
std::string in_short(const Json& value);

}  // namespace redblue
