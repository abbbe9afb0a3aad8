#include "runtime/system/open_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <sys/resource.h>

namespace redblue {
namespace {

// Returns the number of open files, or 0 if the system does not tell.
Index open_now() {
  std::error_code unknown;
  const std::filesystem::directory_iterator files("/proc/self/fd", unknown);
  return unknown ? 0 : std::distance(begin(files), end(files));
}

}  // namespace

void allow_open_files(const Words& more, std::string_view what, std::string_view remedy) {
  constexpr Index kOthers = 64;  // for operands and outputs
  const Words wanted = more + open_now() + kOthers;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  constexpr rlim_t kMost = std::numeric_limits<Index>::max();
  if (wanted > Words(static_cast<Index>(std::min(limit.rlim_max, kMost)))) {
    throw std::runtime_error(fmt::format(
        "{}: {} open files are needed, and this process may have {}: {}, or raise the limit "
        "(ulimit -n)",
        what, wanted.value(), limit.rlim_max, remedy));
  }
  const auto needed = static_cast<rlim_t>(wanted.value());
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = needed;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // any process may raise it up to rlim_max
  }
}

}  // namespace redblue
