#pragma once
// The build that wrote a document, as JSON and as text for people.

#include <string>
#include <utility>
#include <vector>

#include "runtime/text/json.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// Version of the documents. It changes when a key changes its meaning.
inline constexpr int kSchema = 1;

// Returns the first members of a document's "context".
Json build_json();
// Returns a context for people: names and texts of everything known. Throws: InputError.
std::vector<std::pair<std::string, std::string>> facts_of(const JsonField& context);

}  // namespace redblue
