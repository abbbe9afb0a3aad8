// Sparse matrices of SciPy. The input is "n m", and then a file. It is read unchanged, and again
// with corrected checksums of its members. Without the correction, hardly any damage gets past
// them.

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/patterns/text_patterns.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/patterns.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue::fuzz {
namespace {

// Corrects the checksums of all members that are stored without compression.
std::string with_right_checksums(std::string zip) {
  const auto number = [&](std::size_t at, unsigned bytes) {
    std::size_t value = 0;
    for (unsigned k = 0; k < bytes && at + k < zip.size(); ++k) {
      value |= std::size_t{static_cast<unsigned char>(zip[at + k])} << (8 * k);
    }
    return value;
  };
  const std::string_view kEntry = "PK\1\2";
  for (std::size_t at = zip.find(kEntry); at != std::string::npos; at = zip.find(kEntry, at + 1)) {
    const std::size_t header = number(at + 42, 4);
    const std::size_t begin = header + 30 + number(header + 26, 2) + number(header + 28, 2);
    const std::size_t size = number(at + 20, 4);
    if (at + 46 <= zip.size() && begin <= zip.size() && size <= zip.size() - begin) {
      zip.replace(at + 16, 4, little_endian(checksum_of(zip.substr(begin, size)), 4));
    }
  }
  return zip;
}

void feed(const Sized& asked, std::string_view content) {
  const std::filesystem::path file = scratch("a.npz", content);
  const auto read = read_or_refused<InputError>(
      file.string(), [&] { return read_pattern(file, asked.n, asked.m); });
  if (read) {
    demand_well_formed(*read, asked.n, asked.m);
    if (read->block_rows == 1 && read->block_cols == 1) {
      demand(parse_smtx(smtx_of(*read), "a.smtx", asked.n, asked.m) == *read,
             "the same entries in another format are another pattern");
    }
  }
  demand_nothing_left();
}

}  // namespace

void npz(std::string_view input) {
  if (const auto asked = sized(input, kMostOfPatterns)) {
    feed(*asked, asked->rest);
    const std::string repaired = with_right_checksums(std::string(asked->rest));
    if (repaired != asked->rest) {
      feed(*asked, repaired);
    }
  }
}

}  // namespace redblue::fuzz
