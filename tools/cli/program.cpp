#include "tools/cli/program.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <link.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/system/read_text.hpp"

namespace redblue {
namespace {

// Returns the files of this program and of redblue's shared libraries in use.
std::vector<std::string> program_files() {
  std::vector<std::string> files = {"/proc/self/exe"};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const std::string name = object->dlpi_name;
        const std::string file = name.substr(name.rfind('/') + 1);
        if (file.starts_with("libredblue_") || file.starts_with("_redblue.")) {
          static_cast<std::vector<std::string>*>(found)->push_back(name);
        }
        return 0;
      },
      &files);
  return files;
}

}  // namespace

std::string program_fingerprint() {
  std::uint64_t hash = 0;
  for (const std::string& file : program_files()) {
    const std::string bytes = read_text(file, kNoLimit);
    hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace redblue
