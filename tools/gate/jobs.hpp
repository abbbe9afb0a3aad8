#pragma once
// Points of a suite at the same time: --jobs.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tools/cli/command.hpp"

namespace redblue {

class JobsOption {
 public:
  explicit JobsOption(CLI::App& app);
  // As many as there are processors where left out. Throws: UsageError.
  [[nodiscard]] unsigned get() const;
  [[nodiscard]] bool given() const { return jobs_.get().has_value(); }
  [[nodiscard]] std::string said() const { return jobs_.said(); }

 private:
  TextOption jobs_;
};

// Calls work(k) for each k below `count`, so many at a time; on a terminal a line says how many are
// "recorded". Throws what the first of them to fail threw.
void each_point(std::size_t count, unsigned jobs, std::string_view done,
                const std::function<void(std::size_t k)>& work);

}  // namespace redblue
