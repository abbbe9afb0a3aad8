#pragma once
// Files of the operating system: a descriptor that closes itself, and errors of system calls.

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "memsim/cxx20.hpp"

namespace redblue {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  // Returns 0 or the errno of close(2). Either way the descriptor is released.
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && ::close(fd) != 0 ? errno : 0;
  }

 private:
  int fd_;
};

// Reserves disk space for the first `bytes` bytes of a file. Returns 0 or the errno of
// fallocate(2).
inline int allocate(int file, std::int64_t bytes) {
  int result = -1;
  do {
    result = ::fallocate(file, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

[[noreturn]] inline void fail(int error, const std::string& what,
                              const std::filesystem::path& path) {
  throw std::system_error(error, std::generic_category(), "cannot " + what + " " + path.string());
}

// Forces the directory entry of a file to disk. Throws: std::system_error.
inline void force_name(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const Descriptor names(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (names.get() < 0 || ::fsync(names.get()) != 0) {
    fail(errno, "force to disk", directory);
  }
}

}  // namespace redblue
