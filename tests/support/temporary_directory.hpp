#pragma once
// A fresh directory for one test, removed with its content.
//
// A test that forces many small files to disk can use `in_memory()`.

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace redblue {

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::filesystem::path& parent = ::testing::TempDir()) {
    std::string name = (parent / "redblue-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  // Returns a directory in an in-memory file system, or the usual temporary directory without one
  // or with a small one, which containers have.
  static std::filesystem::path in_memory() {
    const char* const kMemory = "/dev/shm";
    constexpr std::uintmax_t kAmple = 1U << 30U;
    std::error_code none;
    const bool ample = std::filesystem::space(kMemory, none).available >= kAmple && !none;
    return ample && ::access(kMemory, W_OK) == 0 ? kMemory : ::testing::TempDir();
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

  // Makes a file, and the directories above it.
  std::filesystem::path write(const std::filesystem::path& name, const std::string& content) const {
    std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

}  // namespace redblue
