// Matrix Market. The input is "n m", and then a file.

#include "runtime/patterns/text_patterns.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/patterns.hpp"

namespace redblue::fuzz {

void mtx(std::string_view input) {
  const auto asked = sized(input, kMostOfPatterns);
  if (!asked) {
    return;
  }
  const auto read = read_or_refused<InputError>(
      "a.mtx", [&] { return parse_mtx(asked->rest, "a.mtx", asked->n, asked->m); });
  if (read) {
    demand_well_formed(*read, asked->n, asked->m);
    demand(parse_smtx(smtx_of(*read), "a.smtx", asked->n, asked->m) == *read,
           "the same entries in another format are another pattern");
  }
}

}  // namespace redblue::fuzz
