#pragma once
// The option --jobs: how many points of a suite run at the same time.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/cli/command.hpp"

namespace redblue {

class JobsOption {
 public:
  explicit JobsOption(CLI::App& app);
  // Returns the number of jobs. The default is the number of processors, or 1 in a sanitizer build.
  // Throws: UsageError.
  [[nodiscard]] unsigned get() const;
  [[nodiscard]] bool given() const { return jobs_.get().has_value(); }
  [[nodiscard]] std::string flag() const { return jobs_.flag(); }

 private:
  TextOption jobs_;
};

// Calls work(k) for each k below `count`, in up to `jobs` threads. A status line on a terminal
// shows the progress, such as "3 of 8 points recorded" if `done` is "recorded". Throws: the first
// failure of a call.
void each_point(std::size_t count, unsigned jobs, std::string_view done,
                const std::function<void(std::size_t k)>& work);

}  // namespace redblue
