// redblue replay: a trace of accesses, or those of a kernel's run, in caches of every size.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/replay/replay_report.hpp"
#include "runtime/report/kernel_replay.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/unit.hpp"

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

// Throws: UsageError where an option is given that says something of a kernel's run.
void refuse_beside_trace(const CLI::App& app, const std::string& from) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && name != "--from" && name != "--at" && name != "--format") {
      throw UsageError(fmt::format("{} beside {}: a trace is of no kernel", name, from));
    }
  }
}

class ReplayOptions {
 public:
  explicit ReplayOptions(CLI::App& app)
      : app_(app),
        problem_(app),
        inputs_(app),
        from_(app, "--from",
              "in place of a kernel a trace in the format din: a line an access, 0 (read) or 1 "
              "(write) and an address in hexadecimal; -: standard input",
              "FILE"),
        at_(app, "--at", "sizes of the cache in words: 1K,2K; powers of two", "M,..."),
        cachesim_(
            app, "--cachesim",
            "what the run touches, for libCacheSim (txt): a line an access, the number of its "
            "word; -: standard output, and nothing else",
            "FILE", Twin::of_command),
        unit_(app),
        per_phase_(app, "--per-phase", "reads in each phase of the run, too"),
        format_(app, "--format", "table, json or csv; table", "FORMAT") {
    app.get_option("kernel")->required(false);
  }

  [[nodiscard]] Format format() const { return parse_format(format_); }
  [[nodiscard]] std::optional<std::string> cachesim() const {
    const auto given = cachesim_.get();
    return given ? std::optional(given->text) : std::nullopt;
  }
  [[nodiscard]] ReplayReport report() const {
    const auto at = at_.get();
    const std::vector<Index> sizes = at ? parse_sizes(at->text, at->from) : std::vector<Index>();
    ReplayReport report = replayed();
    if (const Index widest = report.replayed.widest; !sizes.empty() && sizes.front() < widest) {
      throw UsageError(fmt::format("{} {}: the widest row has {} words, and a cache at least that",
                                   at->from, sizes.front(), widest));
    }
    report.at = sizes.empty() ? sizes_shown(report) : sizes;
    return report;
  }

 private:
  [[nodiscard]] ReplayReport replayed() const {
    if (const auto from = from_.get()) {
      refuse_beside_trace(app_, from->from);
      return {.replayed = replay(parse_dinero(read_text(from->text), input_name(from->text))),
              .at = {}};
    }
    if (app_.get_option("kernel")->count() == 0) {
      throw UsageError(
          "name a kernel of `redblue list`, or --from FILE, a trace such as redblue trace --din "
          "writes");
    }
    const ReplayUnit unit = unit_.get();
    if (const auto cachesim = cachesim_.get(); cachesim && unit == ReplayUnit::row) {
      throw UsageError(fmt::format("{} beside {} row: the format has no sizes; take words",
                                   cachesim->from, unit_.said()));
    }
    Request request;
    problem_.fill(request);
    inputs_.fill(request);
    ReplayReport report{
        .replayed = {}, .at = {}, .kernel = accesses_of(request, unit), .unit = unit};
    report.per_phase = per_phase_.get();
    report.replayed = replay(report.kernel->accesses);
    return report;
  }

  CLI::App& app_;
  ProblemOptions problem_;
  InputOptions inputs_;
  TextOption from_, at_, cachesim_;
  UnitOption unit_;
  Switch per_phase_;
  TextOption format_;
};

}  // namespace

Action add_replay(CLI::App& app) {
  const auto options = std::make_shared<ReplayOptions>(app);
  return [options] {
    const Format format = options->format();
    const auto cachesim = options->cachesim();
    const ReplayReport report = options->report();
    if (cachesim) {
      write_whole(*cachesim, to_cachesim(report.kernel->accesses));
      if (is_standard_output(*cachesim)) {
        return 0;
      }
    }
    print(report, format);
    return 0;
  };
}

}  // namespace redblue
