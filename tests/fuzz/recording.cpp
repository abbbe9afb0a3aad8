// Recordings of a gate: a baseline.

#include "runtime/gate/baseline.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void recording(std::string_view input) {
  const auto read =
      read_or_refused<InputError>("a.json", [&] { return parse_recording(input, "a.json"); });
  if (read) {
    const Recording again = parse_recording(to_json(*read), "again.json");
    demand(again.how == read->how && again.points == read->points && again.part == read->part,
           "what is written is read as another recording");
  }
}

}  // namespace redblue::fuzz
