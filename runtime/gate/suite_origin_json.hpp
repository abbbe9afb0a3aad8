#pragma once
// The origin of points, as documents and journals have it.

#include "runtime/gate/suite_part.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// The members of an object.
Json to_json(const SuiteOrigin& origin);
// Throws: JsonMismatch.
SuiteOrigin origin_of(const Json& json);

}  // namespace redblue
