// Offsets of documents, .npy of whole numbers. The input is "n n", and then a file.

#include <algorithm>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue::fuzz {

void offsets(std::string_view input) {
  const auto asked = sized(input, Index{1} << 60);
  if (!asked) {
    return;
  }
  const std::filesystem::path file = scratch("offsets.npy", asked->rest);
  const auto read =
      read_or_refused<InputError>(file.string(), [&] { return read_offsets(file, asked->n); });
  if (read) {
    demand(!read->empty() && read->front() == 0 && read->back() == asked->n &&
               std::is_sorted(read->begin(), read->end()),
           "offsets that do not rise from 0 to n");
    const std::filesystem::path again = scratch("again.npy", npy_integers(*read));
    demand(read_offsets(again, asked->n) == *read, "what is written is read as other offsets");
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
