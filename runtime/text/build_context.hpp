#pragma once
// What documents say of the build that wrote them, and how people read it.

#include <string>
#include <utility>
#include <vector>

#include "runtime/text/json.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// A key that changes its meaning changes this number.
inline constexpr int kSchema = 1;

// The build, as a document's "context" begins.
Json build_json();
// A context for people: names and texts of all that is known. Throws: InputError.
std::vector<std::pair<std::string, std::string>> facts_of(const JsonField& context);

}  // namespace redblue
