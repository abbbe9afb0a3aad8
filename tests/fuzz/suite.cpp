// Suites of a gate or a sweep, and recordings used as suites.

#include "tools/gate/suite.hpp"

#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void suite(std::string_view input) {
  static const std::vector<Subject> subjects = kernel_subjects();
  const std::filesystem::path file = scratch("suite.json", input);
  const std::vector<std::string> hows = {"run", "count", "time"};
  const auto read = read_or_refused<InputError>(
      file.string(), [&] { return read_suite(file.string(), subjects, hows); });
  if (read) {
    demand(!read->points.empty() && read->text == input, "a suite of nothing, or of other text");
    for (const SuitePoint& point : read->points) {
      demand(complete(*point.subject, point.arguments) == point.arguments,
             "arguments that are not complete");
    }
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
