// The format of the DLMC collection. The input is "n m", and then a file.

#include "runtime/patterns/text_patterns.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/patterns.hpp"

namespace redblue::fuzz {

void smtx(std::string_view input) {
  const auto asked = sized(input, kMostOfPatterns);
  if (!asked) {
    return;
  }
  const auto parsed = [&](std::string_view text) {
    return parse_smtx(text, "a.smtx", asked->n, asked->m);
  };
  const auto read = read_or_refused<InputError>("a.smtx", [&] { return parsed(asked->rest); });
  if (read) {
    demand_well_formed(*read, asked->n, asked->m);
    demand(parsed(smtx_of(*read)) == *read, "what is written is read as another pattern");
  }
}

}  // namespace redblue::fuzz
