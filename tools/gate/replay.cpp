#include "tools/gate/replay.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/print.hpp"

namespace redblue {
namespace {

// Returns comma-separated sizes, sorted and without repetitions. Throws: UsageError.
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

ReplayOutputs::ReplayOutputs(CLI::App& app)
    : at_(app, "--at", "sizes of caches in words, such as 64,1K (default: powers of two)", "M,..."),
      cachesim_(
          app, "--cachesim",
          "write the accesses for libCacheSim, one word number on each line (-: standard output)",
          "FILE"),
      per_phase_(app, "--per-phase", "add the reads of each phase"),
      format_(app, "--format", "output format (default: table)", "table|json|csv") {}

void ReplayOutputs::check() const {
  static_cast<void>(parse_format(format_));
  if (const auto at = at_.get()) {
    static_cast<void>(parse_sizes(at->text, at->from));
  }
}

void ReplayOutputs::take(ReplayReport report) const {
  const Format format = parse_format(format_);
  const auto at = at_.get();
  report.at = at ? parse_sizes(at->text, at->from) : sizes_shown(report);
  if (const Index widest = report.replayed.widest; at && report.at.front() < widest) {
    throw UsageError(fmt::format("{} {}: the widest row has {} words, and a cache at least that",
                                 at->from, report.at.front(), widest));
  }
  report.per_phase = report.kernel && per_phase_.get();
  if (const auto file = cachesim(); file && report.kernel) {
    print_to(file->text, to_cachesim(report.kernel->accesses));
    if (is_standard_output(file->text)) {
      return;
    }
  }
  print(report, format);
}

}  // namespace redblue
