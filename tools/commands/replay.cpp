// redblue replay: a trace of accesses in caches of every size.

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "runtime/report/replay_report.hpp"
#include "runtime/system/read_text.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"

namespace redblue {
namespace {

// Sizes in commas, rising, each once. Throws: UsageError.
std::vector<Index> parse_sizes(std::string_view text, const std::string& from) {
  std::vector<Index> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(parse_size(text.substr(begin, end - begin), from));
    begin = end + 1;
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

Action add_replay(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : from(command, "--from",
               "a trace in the format din: a line an access, 0 (read) or 1 (write) and an address "
               "in hexadecimal; -: standard input",
               "FILE"),
          at(command, "--at", "sizes of the cache in words: 1K,2K; powers of two", "M,..."),
          format(command, "--format", "table, json or csv; table", "FORMAT") {}
    TextOption from, at, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const Format format = parse_format(options->format);
    const auto from = options->from.get();
    if (!from) {
      throw UsageError("--from is missing: name a trace, such as redblue trace --din writes");
    }
    const auto at = options->at.get();
    const std::vector<Index> sizes = at ? parse_sizes(at->text, at->from) : std::vector<Index>();
    ReplayReport report{
        .replayed = replay(parse_dinero(read_text(from->text), input_name(from->text))),
        .at = sizes};
    if (sizes.empty()) {
      report.at = sizes_shown(report.replayed.words);
    }
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
