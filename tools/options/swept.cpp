#include "tools/options/swept.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "runtime/system/read_text.hpp"

namespace redblue {

Sweep read_sweep(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kDocumentFile;
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error(
        fmt::format("there is no {}: `redblue sweep SUITE -o {}` makes it, or goes on with it",
                    file.string(), directory.string()));
  }
  return parse_sweep(read_text(file), file.string());
}

}  // namespace redblue
