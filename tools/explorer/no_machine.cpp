// What a page has instead of a machine: no signals, no files of the user, and no gnuplot.

#include "runtime/observe/machine_file.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/gate/picture.hpp"

namespace redblue {

std::function<void()> stop_if_caller_asks() {
  return nullptr;
}

std::optional<std::filesystem::path> machine_file_path(std::string_view /*name*/) {
  return std::nullopt;
}

PictureOptions::PictureOptions(CLI::App& app)
    : out(app, "-o,--out", "", "FILE"), bare(app, "--bare", "") {}

}  // namespace redblue
