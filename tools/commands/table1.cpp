// redblue table1: the paper's Table 1, with the words that the formulas count.

#include "runtime/report/table1.hpp"

#include <memory>

#include "runtime/text/description.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"

namespace redblue {

Action add_table1(CLI::App& app) {
  const auto format = std::make_shared<TextOption>(
      app, "--format", "output format (default: table)", "table|json|csv");
  return [format] {
    const Format chosen = parse_format(*format);
    print(report_table1(), chosen);
    return 0;
  };
}

}  // namespace redblue
