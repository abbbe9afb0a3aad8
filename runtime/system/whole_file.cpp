#include "runtime/system/whole_file.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system/environment.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/system/unfinished_files.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

// The file or open descriptor of a target.
struct Place {
  path file;            // links followed
  int descriptor = -1;  // an open file of this process, else -1
};

// Returns N if `file` is /proc/self/fd/N.
std::optional<int> open_file(const path& file) {
  std::error_code error;
  const path own = std::filesystem::canonical("/proc/self/fd", error);
  const path parent =
      std::filesystem::canonical(file.has_parent_path() ? file.parent_path() : path("."), error);
  const std::string name = file.filename().string();
  int number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  return !error && parent == own && failed == std::errc() && end == name.data() + name.size()
             ? std::optional(number)
             : std::nullopt;
}

// Follows symbolic links. Stops at an open file of this process, such as /dev/stdout, so that the
// earlier content of that file stays.
Place follow(const path& target) {
  if (target == "-") {
    return {target, STDOUT_FILENO};
  }
  path file = target;
  constexpr int kMostLinks = 40;  // the system's limit
  for (int i = 0; i < kMostLinks; ++i) {
    if (const auto number = open_file(file)) {
      return {file, *number};
    }
    std::error_code error;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(file, error))) {
      return {file};
    }
    const path link = std::filesystem::read_symlink(file, error);
    if (error) {
      fail(error.value(), "write", target);
    }
    file = file.parent_path() / link;
  }
  fail(ELOOP, "write", target);
}

// Returns a descriptor for writing to an open file of this process, a device or a pipe. Returns an
// empty one for a regular file or for a path without a file.
Descriptor open_stream(const Place& place, const path& target) {
  if (place.descriptor >= 0) {
    constexpr int kBeyondTheUsual = 3;
    Descriptor stream(::fcntl(place.descriptor, F_DUPFD_CLOEXEC, kBeyondTheUsual));
    const int flags = stream.get() < 0 ? -1 : ::fcntl(stream.get(), F_GETFL);
    if (flags < 0) {
      fail(errno, "write", target);
    }
    if ((flags & O_ACCMODE) == O_RDONLY) {
      fail(EBADF, "write", target);
    }
    return stream;
  }
  struct stat status {};
  if (::stat(place.file.c_str(), &status) != 0) {
    if (errno != ENOENT || target.empty()) {
      fail(errno, "write", target);
    }
    return Descriptor();
  }
  if (S_ISDIR(status.st_mode)) {
    fail(EISDIR, "write", target);
  }
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)) {
    Descriptor stream(
        retry([&] { return ::open(place.file.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC); }));
    if (stream.get() < 0) {
      fail(errno, "write", target);
    }
    return stream;
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ENOTSUP, "replace the special file", target);
  }
  if (::faccessat(AT_FDCWD, place.file.c_str(), W_OK, AT_EACCESS) != 0) {
    fail(errno, "write", target);
  }
  return Descriptor();
}

}  // namespace

bool is_standard_output(const path& target) {
  return follow(target).descriptor == STDOUT_FILENO;
}

bool is_stream(const path& target) {
  const Place place = follow(target);
  std::error_code error;
  return place.descriptor >= 0 || (std::filesystem::exists(place.file, error) &&
                                   !std::filesystem::is_regular_file(place.file, error));
}

path place_of(const path& target) {
  const Place place = follow(target);
  if (place.descriptor >= 0) {
    return fmt::format("/proc/self/fd/{}", place.descriptor);
  }
  std::error_code error;
  const path found =
      std::filesystem::weakly_canonical(std::filesystem::absolute(place.file, error), error);
  return error ? place.file : found;
}

WholeFile::WholeFile(path target) : target_(std::move(target)) {
  const Place place = follow(target_);
  if (place.descriptor == STDOUT_FILENO) {
    target_ = "standard output";
  }
  stream_ = open_stream(place, target_);
  is_stream_ = stream_.get() >= 0;
  file_path_ = place.file;
  std::error_code error;
  directory_ = is_stream_                     ? temporary_directory(error)
               : file_path_.has_parent_path() ? file_path_.parent_path()
                                              : path(".");
  if (error) {
    fail(error.value(), "find the directory for temporary files, to write", target_);
  }
  // A file without a name disappears when its process is killed. finish() needs /proc to give it a
  // name.
  if (::access("/proc/self/fd", X_OK) == 0) {
    file_ = Descriptor(retry([&] {
      return ::open(directory_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);  // & ~umask
    }));
  }
  if (file_.get() < 0) {
    name_temporary([&](const path& name) {
      file_ = Descriptor(
          retry([&] { return ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
      return file_.get();
    });
  }
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) {
    UnfinishedFiles unfinished;
    ::unlink(temporary_.c_str());
    unfinished.erase(temporary_);
  }
}

// Makes a file under a short temporary name. The target's name with a suffix might be too long.
template <class Make>
void WholeFile::name_temporary(Make make) {
  constexpr int kTries = 10000;
  for (int i = 0; i < kTries; ++i) {
    const path name = directory_ / fmt::format(".redblue-{}-{}.tmp", ::getpid(), i);
    UnfinishedFiles unfinished;
    if (make(name) >= 0) {
      temporary_ = name;
      unfinished.add(name, UnfinishedFiles::Kind::file);
      return;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  fail(errno, fmt::format("create a file in directory {} for", directory_.string()), target_);
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

// Copies all appended bytes to the stream.
void WholeFile::pour() {
  std::vector<std::byte> chunk(std::size_t{1} << 20);
  for (std::int64_t offset = 0;;) {
    const ssize_t read =
        retry([&] { return ::pread(file_.get(), chunk.data(), chunk.size(), offset); });
    if (read < 0) {
      fail(errno, "read again what goes to", target_);
    }
    if (read == 0) {
      break;
    }
    offset += read;
    for (std::span<const std::byte> left(chunk.data(), static_cast<std::size_t>(read));
         !left.empty();) {
      const ssize_t written =
          retry([&] { return ::write(stream_.get(), left.data(), left.size()); });
      if (written < 0) {
        fail(errno, "write", target_);
      }
      left = left.subspan(static_cast<std::size_t>(written));
    }
  }
  if (const int error = stream_.close(); error != 0) {
    fail(error, "write", target_);
  }
}

void WholeFile::finish() {
  if (is_stream_) {
    pour();
    complete_ = true;
    return;
  }
  if (temporary_.empty()) {
    const std::string nameless = fmt::format("/proc/self/fd/{}", file_.get());
    name_temporary([&](const path& name) {
      return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
    });
  }
  struct stat old {};
  if (::stat(file_path_.c_str(), &old) == 0) {
    // Some file systems cannot set permissions. That is no reason to lose the file.
    static_cast<void>(::fchmod(file_.get(), old.st_mode & 07777));
  }
  const int synced = retry([&] { return ::fsync(file_.get()); });
  const int sync_error = synced == 0 ? 0 : errno;
  const int close_error = file_.close();
  if (sync_error != 0 || close_error != 0) {
    fail(sync_error != 0 ? sync_error : close_error, "write", target_);
  }
  complete_ = true;
}

void WholeFile::commit(Then then) {
  if (!std::exchange(complete_, false)) {
    throw std::logic_error(
        fmt::format("{}: committed twice, or before it was complete", target_.string()));
  }
  UnfinishedFiles unfinished;
  if (!is_stream_) {
    if (std::rename(temporary_.c_str(), file_path_.c_str()) != 0) {
      fail(errno, "write", target_);
    }
    unfinished.erase(temporary_);
    temporary_.clear();
  }
  if (then == Then::end) {
    unfinished.keep_outputs();
  }
}

void write_whole(const std::string& target, const std::string& text) {
  WholeFile file(target);
  file.append(text);
  file.finish();
  file.commit();
}

}  // namespace redblue
