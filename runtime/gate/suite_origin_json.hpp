#pragma once
// Reads and writes the origin of points in documents and journals.

#include "runtime/gate/suite_part.hpp"
#include "runtime/text/json.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// Returns a JSON object.
Json to_json(const SuiteOrigin& origin);
// Throws: InputError.
SuiteOrigin origin_of(const JsonField& field);

}  // namespace redblue
