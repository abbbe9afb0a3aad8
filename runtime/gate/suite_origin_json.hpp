#pragma once
// The origin of points, as documents and journals have it.

#include "runtime/gate/suite_part.hpp"
#include "runtime/text/json.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// The members of an object.
Json to_json(const SuiteOrigin& origin);
// Throws: InputError.
SuiteOrigin origin_of(const JsonField& field);

}  // namespace redblue
