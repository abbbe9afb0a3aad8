#include "runtime/system/read_text.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memsim/store/file.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/system_call.hpp"

namespace redblue {
namespace {

[[noreturn]] void cannot_read(int error, const std::string& path) {
  throw std::system_error(error, std::generic_category(),
                          fmt::format("cannot read '{}'", input_name(path)));
}

// Accepts files, pipes and terminals. A pipe ends when its writer closes it. Other devices may have
// no end.
void check_kind(const struct stat& status, int file, const std::string& path) {
  if (S_ISDIR(status.st_mode)) {
    cannot_read(EISDIR, path);
  }
  const bool typed = is_standard_input(path) && ::isatty(file) == 1;
  if ((S_ISCHR(status.st_mode) && !typed) || S_ISBLK(status.st_mode)) {
    throw InputError(
        fmt::format("{} is a device: expected a regular file or a pipe", input_name(path)));
  }
}

}  // namespace

bool is_standard_input(const std::string& path) {
  return path == "-";
}

std::string input_name(const std::string& path) {
  return is_standard_input(path) ? "standard input" : path;
}

int read_to_end(int file, std::string& text, std::size_t most) {
  char part[1 << 16];
  while (text.size() <= most) {
    const ssize_t got = retry([&] { return ::read(file, part, sizeof part); });
    if (got <= 0) {
      return got < 0 ? errno : 0;
    }
    text.append(part, static_cast<std::size_t>(got));
  }
  return 0;
}

std::string read_text(const std::string& path, std::size_t most) {
  Descriptor opened;
  struct stat status {};
  if (!is_standard_input(path)) {
    if (::stat(path.c_str(), &status) != 0) {
      cannot_read(errno, path);
    }
    check_kind(status, -1, path);  // opening a device may have an effect
    opened = Descriptor(retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
    if (opened.get() < 0) {
      cannot_read(errno, path);
    }
  }
  const int file = is_standard_input(path) ? STDIN_FILENO : opened.get();
  if (::fstat(file, &status) != 0) {
    cannot_read(errno, path);
  }
  check_kind(status, file, path);
  const auto check_size = [&](std::size_t bytes) {
    if (bytes > most) {
      throw InputError(
          fmt::format("{} is too large: expected at most {} MiB", input_name(path), most >> 20));
    }
  };
  std::string text;
  if (S_ISREG(status.st_mode)) {
    check_size(static_cast<std::size_t>(status.st_size));
    text.reserve(static_cast<std::size_t>(status.st_size));
  }
  if (const int error = read_to_end(file, text, most); error != 0) {
    cannot_read(error, path);
  }
  check_size(text.size());
  return text;
}

std::string content_if_any(const std::filesystem::path& path) {
  const Descriptor file(retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  std::string text;
  if (file.get() >= 0) {
    read_to_end(file.get(), text);
  }
  return text;
}

}  // namespace redblue
