#include "tools/cli/inputs.hpp"

#include <fmt/format.h>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {

void refuse_input(const Given& out, const std::filesystem::path& input) {
  if (input != "-" && !is_stream(out.text) && place_of(out.text) == place_of(input)) {
    throw UsageError(fmt::format(
        "{} '{}': this command reads the file: name another for its output", out.from, out.text));
  }
}

}  // namespace redblue
