// redblue explore: serves the explorer's page to a browser on this machine.

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>

#include "runtime/system/environment.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/system/system_call.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/commands/folder_server.hpp"

namespace redblue {
namespace {

namespace fs = std::filesystem;

std::uint16_t port_of(const TextOption& option) {
  const auto given = option.get();
  if (!given) {
    return 0;
  }
  int port = 0;
  const char* const end = given->text.data() + given->text.size();
  const auto [rest, error] = std::from_chars(given->text.data(), end, port);
  if (error != std::errc() || rest != end || port < 1 ||
      port > std::numeric_limits<std::uint16_t>::max()) {
    throw UsageError(
        fmt::format("{} '{}': expected a port from 1 to 65535", given->from, given->text));
  }
  return static_cast<std::uint16_t>(port);
}

bool has_page(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "index.html", error);
}

// Returns the folder of the page: as given, or where it was built or installed with this command.
fs::path folder_of(const TextOption& option) {
  if (const auto given = option.get()) {
    if (!has_page(given->text)) {
      throw InputError(
          fmt::format("{} '{}': this folder has no index.html", given->from, given->text));
    }
    return given->text;
  }
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {"../explorer", "../share/redblue/explorer"}) {
    if (const fs::path folder = (own / place).lexically_normal(); has_page(folder)) {
      return folder;
    }
  }
  throw InputError(
      "the explorer's page is not there: run tools/setup --explorer and tools/explorer/build in "
      "redblue's sources, install again if this command is installed, or give --folder");
}

// Starts a browser and does not wait for it. Returns whether there is a program that starts one.
bool open_browser(const std::string& address) {
  const char* const search = variable("PATH");
  const auto opener = find_program("xdg-open", search == nullptr ? "" : search);
  if (!opener) {
    return false;
  }
  const std::vector<std::string> words = {*opener, address};
  pid_t child = 0;
  return ::posix_spawn(&child, opener->c_str(), nullptr, nullptr, pointers(words).data(),
                       pointers(environment().all()).data()) == 0;
}

}  // namespace

Action add_explore(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : port(command, "--port", "port of 127.0.0.1 (default: any free port)", "PORT"),
          folder(command, "--folder", "folder of the page (default: as built or installed)",
                 "FOLDER"),
          no_open(command, "--no-open", "print the address and start no browser") {}
    TextOption port, folder;
    Switch no_open;
  };
  const auto options = std::make_shared<Options>(app);
  return [options]() -> int {
    const std::uint16_t port = port_of(options->port);
    FolderServer server(folder_of(options->folder), port);
    print(server.address() + "\n");
    if (options->no_open.get() || !open_browser(server.address())) {
      say("open this address in a browser; Ctrl-C ends the server");
    } else {
      say("Ctrl-C ends the server");
    }
    server.serve();
  };
}

}  // namespace redblue
