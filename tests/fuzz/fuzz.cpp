#include "tests/fuzz/fuzz.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <system_error>

#include <unistd.h>

namespace redblue::fuzz {
namespace {

class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "redblue-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path write(const std::string& name, std::string_view content) {
    names_.insert(name);
    std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  void demand_nothing_left() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      demand(names_.contains(name), "left " + name);
    }
  }

 private:
  std::filesystem::path path_;
  std::set<std::string> names_;
};

Directory& directory() {
  static Directory directory;
  return directory;
}

}  // namespace

void demand(bool holds, const std::string& what) {
  if (!holds) {
    throw Broken(what);
  }
}

std::filesystem::path scratch(const std::string& name, std::string_view content) {
  return directory().write(name, content);
}

std::string content_of(const std::filesystem::path& file) {
  std::string content(std::filesystem::file_size(file), '\0');
  std::ifstream(file, std::ios::binary)
      .read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

void demand_nothing_left() {
  directory().demand_nothing_left();
}

void demand_message(const std::exception& error, std::string_view culprit) {
  constexpr std::size_t kMost = 1000;
  const std::string_view message = error.what();
  demand(message.find(culprit) != std::string_view::npos,
         "a message without its culprit: " + std::string(message));
  demand(message.find('\n') == std::string_view::npos,
         "a message of several lines: " + std::string(message));
  demand(message.size() <= culprit.size() + kMost, "an endless message: " + std::string(message));
}

std::optional<Sized> sized(std::string_view input, Index most) {
  Sized found;
  const char* const end = input.data() + input.size();
  const auto [space, no_n] = std::from_chars(input.data(), end, found.n);
  if (no_n != std::errc() || space == end) {
    return std::nullopt;
  }
  const auto [line, no_m] = std::from_chars(space + 1, end, found.m);
  if (no_m != std::errc() || line == end || std::min(found.n, found.m) < 1 ||
      std::max(found.n, found.m) > most) {
    return std::nullopt;
  }
  found.rest = input.substr(static_cast<std::size_t>(line - input.data()) + 1);
  return found;
}

}  // namespace redblue::fuzz
