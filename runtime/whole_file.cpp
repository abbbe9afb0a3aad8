#include "runtime/whole_file.hpp"

#include <cerrno>
#include <cstdio>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system_call.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

// A rename would replace a link or a device by a file, and what was written to standard output
// before would be lost: only a regular file, or none yet, is a target.
void check_target(const path& target) {
  struct stat status {};
  if (::lstat(target.c_str(), &status) != 0) {
    if (errno != ENOENT || target.empty()) {
      fail(errno, "write", target);
    }
    return;
  }
  if (S_ISDIR(status.st_mode)) {
    fail(EISDIR, "write", target);
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ENOTSUP,
         S_ISLNK(status.st_mode) ? "write through the symbolic link" : "replace the special file",
         target);
  }
  if (::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) {
    fail(errno, "write", target);
  }
}

}  // namespace

WholeFile::WholeFile(path target) : target_(std::move(target)) {
  check_target(target_);
  // Where it can be, the file has no name until it is complete: then a process that is killed
  // leaves nothing behind.
  if (::access("/proc/self/fd", X_OK) == 0) {
    file_ = Descriptor(retry([&] {
      return ::open(directory().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);  // & ~umask
    }));
  }
  if (file_.get() < 0) {
    name_temporary([&](const path& name) {
      file_ = Descriptor(retry(
          [&] { return ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
      return file_.get();
    });
  }
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

path WholeFile::directory() const {
  return target_.has_parent_path() ? target_.parent_path() : path(".");
}

// A name of its own kind, not the target's with something added, which may be too long.
template <class Make>
void WholeFile::name_temporary(Make make) {
  constexpr int kTries = 10000;
  for (int i = 0; i < kTries; ++i) {
    const path name = directory() / fmt::format(".redblue-{}-{}.tmp", ::getpid(), i);
    if (make(name) >= 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  fail(errno, fmt::format("create a file in directory {} for", directory().string()), target_);
}

void WholeFile::remove_left(const path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".redblue-") && name.ends_with(".tmp")) {
      std::filesystem::remove(entry.path());
    }
  }
}

void WholeFile::reserve(std::int64_t bytes) {
  const int failed = retry([&] { return ::fallocate(file_.get(), 0, 0, bytes); });
  if (failed != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    fail(errno, "write", target_);
  }
}

void WholeFile::append(std::span<const std::byte> bytes) {
  put(offset_, bytes);
  offset_ += static_cast<std::int64_t>(bytes.size());
}

void WholeFile::replace(std::int64_t offset, std::span<const std::byte> bytes) {
  put(offset, bytes);
}

void WholeFile::put(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        retry([&] { return ::pwrite(file_.get(), bytes.data(), bytes.size(), offset); });
    if (written <= 0) {
      fail(written < 0 ? errno : EIO, "write", target_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void WholeFile::finish() {
  if (temporary_.empty()) {
    const std::string nameless = fmt::format("/proc/self/fd/{}", file_.get());
    name_temporary([&](const path& name) {
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
    });
  }
  const int synced = retry([&] { return ::fsync(file_.get()); });
  const int sync_error = synced == 0 ? 0 : errno;
  const int close_error = file_.close();
  if (sync_error != 0 || close_error != 0) {
    fail(sync_error != 0 ? sync_error : close_error, "write", target_);
  }
  complete_ = true;
}

void WholeFile::commit() {
  if (!complete_ || temporary_.empty()) {
    throw std::logic_error(
        fmt::format("{}: committed twice, or before it was complete", target_.string()));
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail(errno, "write", target_);
  }
  temporary_.clear();
}

}  // namespace redblue
