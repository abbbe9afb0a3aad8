// --mask. The input is "n m", and then an expression, which may name the files of this directory.

#include "kernels/mask.hpp"

#include "runtime/run/mask_spec.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue::fuzz {
namespace {

// Writes files for problems of 8 queries and 8 keys.
std::filesystem::path directory_of_files() {
  static const std::filesystem::path directory = [] {
    scratch("docs.npy", npy_integers({0, 3, 8}));
    scratch("layout.npy", npy_file(npy_header("|b1", false, "(2, 2)"), std::string("\1\0\1\1", 4)));
    scratch("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n8 8 3\n1 1\n2 8\n8 1\n");
    return scratch("a.smtx", "8, 8, 2\n0 1 1 1 1 1 1 1 2\n3 7\n").parent_path();
  }();
  return directory;
}

}  // namespace

void mask(std::string_view input) {
  const auto asked = sized(input, INT64_MAX);
  // Only files of that directory. The command itself escapes a newline in a file's name.
  if (!asked || asked->rest.find_first_of("/\n") != std::string_view::npos) {
    return;
  }
  const Shape shape{.n = asked->n, .m = asked->m, .d = 1};
  const auto parsed = [&](const std::string& spec) {
    return parse_mask(spec, shape, "--mask", directory_of_files());
  };
  const std::string spec(asked->rest);
  std::optional<Mask> read;
  try {
    read = parsed(spec);
  } catch (const UsageError& error) {
    demand_message(error, "--mask");
  } catch (const InputError& error) {
    demand_message(error, directory_of_files().string());
  } catch (const std::filesystem::filesystem_error& error) {
    demand_message(error, directory_of_files().string());
  } catch (const std::system_error& error) {
    demand_message(error, directory_of_files().string());
  }
  if (read && !read->full()) {
    demand(read->queries() == shape.n && read->keys() == shape.m, "a mask of other extents");
    const Words pairs = read->pairs({0, shape.n}, {0, shape.m});
    demand(pairs <= Words(shape.n) * shape.m, "more pairs than there are");
    demand(size_of(read->live_queries()) <= shape.n && size_of(read->live_keys()) <= shape.m,
           "more live queries or keys than there are");
    demand((*read | *read) == *read && (*read & *read) == *read, "M | M is not M");
  }
  if (read) {
    demand(fingerprint_of(parsed(spec), shape) == fingerprint_of(*read, shape),
           "the same text is another mask");
  }
}

}  // namespace redblue::fuzz
