#include "runtime/system/journal.hpp"

#include <cerrno>
#include <stdexcept>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system/read_text.hpp"
#include "runtime/system/system_call.hpp"

namespace redblue {

std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', begin)) {
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Journal::Journal(std::filesystem::path path)
    : path_(std::move(path)), file_(retry([&] {
        return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
      })) {
  if (file_.get() < 0) {
    fail(errno, "write", path_);
  }
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw std::runtime_error(path_.string() +
                               " is in use by another process: wait for it, or take another place");
    }
    fail(errno, "lock", path_);
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    fail(errno, "read", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    throw std::runtime_error(path_.string() + " is no regular file: remove it");
  }
  if (static_cast<std::size_t>(status.st_size) > kMostBytes) {
    throw std::runtime_error(path_.string() + " is larger than any that redblue wrote: remove it");
  }
  std::string text;
  if (const int error = read_to_end(file_.get(), text); error != 0) {
    fail(error, "read", path_);
  }
  lines_ = whole_lines(text);
  const std::size_t begin = text.rfind('\n') + 1;  // of an incomplete last line
  if (begin < text.size() && ::ftruncate(file_.get(), static_cast<off_t>(begin)) != 0) {
    fail(errno, "cut", path_);
  }
}

void Journal::append(std::string_view line) {
  const off_t begin = ::lseek(file_.get(), 0, SEEK_END);
  while (!line.empty()) {
    const ssize_t put = retry([&] { return ::write(file_.get(), line.data(), line.size()); });
    if (put < 0) {
      const int error = errno;
      // Remove the partial line, so that the next line does not begin in the middle of it.
      static_cast<void>(::ftruncate(file_.get(), begin));
      fail(error, "write", path_);
    }
    line.remove_prefix(static_cast<std::size_t>(put));
  }
}

void Journal::clear() {
  if (::ftruncate(file_.get(), 0) != 0) {
    fail(errno, "cut", path_);
  }
  lines_.clear();
}

void Journal::remove() {
  if (::unlink(path_.c_str()) != 0) {
    fail(errno, "remove", path_);
  }
}

}  // namespace redblue
