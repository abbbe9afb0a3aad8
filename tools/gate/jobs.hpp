#pragma once
// --jobs: points of a suite at the same time.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/cli/command.hpp"

namespace redblue {

class JobsOption {
 public:
  explicit JobsOption(CLI::App& app);
  // By default the number of processors; 1 with a sanitizer. Throws: UsageError.
  [[nodiscard]] unsigned get() const;
  [[nodiscard]] bool given() const { return jobs_.get().has_value(); }
  [[nodiscard]] std::string flag() const { return jobs_.flag(); }

 private:
  TextOption jobs_;
};

// Calls work(k) for each k below `count`, up to `jobs` at a time. On a terminal a line says how
// many are `done`: "recorded", for example. Throws: the first failure of a call.
void each_point(std::size_t count, unsigned jobs, std::string_view done,
                const std::function<void(std::size_t k)>& work);

}  // namespace redblue
