#include "tools/commands/redblue.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/run/sparse_operands.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/system/memory.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/commands/completion.hpp"
#include "tools/commands/manual.hpp"
#include "tools/gate/gate.hpp"
#include "tools/gate/merge.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {
namespace {

constexpr const char* kName = "redblue";

}  // namespace

std::vector<Subcommand> redblue_subcommands(Transport* transport, Arrays* arrays) {
  struct Shared {
    MemoryBudget memory;  // memory budget of points that run at the same time
    Sparsities sparsities;
  };
  const auto shared = std::make_shared<Shared>();
  std::vector<Subcommand> subcommands;
  const auto add = [&](std::string group, std::vector<Subcommand> some) {
    for (Subcommand& subcommand : some) {
      subcommand.group = group;
      subcommands.push_back(std::move(subcommand));
    }
  };
  add("Count and plan",
      {{"count", "count the words that a kernel moves, from formulas", add_count},
       {"plan", "rank the kernels for a problem and a fast memory of M words", add_plan},
       {"bounds", "show proven lower bounds, and how close kernels come", add_bounds},
       {"curve", "show words and lower bounds as M, n or d grows", add_curve},
       {"run", "run a kernel and count its words",
        [transport, arrays](CLI::App& app) { return add_run(app, transport, arrays); }},
       {"list", "list the kernels; with --n and --d, the least M that each needs", add_list}});
  find_more_subjects([shared](const std::string& name, const std::filesystem::path& directory) {
    return nest_subject(name, directory, &shared->memory, &shared->sparsities,
                        stop_if_caller_asks());
  });
  add("Gate", gate_subcommands([shared] {
        return kernel_subjects(&shared->memory, &shared->sparsities, stop_if_caller_asks());
      }));
  add("Gate",
      {{"history", "show the words of a baseline through its commits in git", add_history},
       {"merge", "join the parts of a sweep or baseline that several machines made", add_merge}});
  add("Measure",
      {{"info", "show version, compiler and optional parts, and this machine's caches and counters",
        add_info},
       {"measure", "run a kernel and measure the traffic of a cache", add_measure},
       {"tune", "find the fastest kernel and M for a problem, for --M auto", add_tune},
       {"calibrate", "time all kernels, words and caches of this machine, for --objective time",
        [transport](CLI::App& app) { return add_calibrate(app, transport); }}});
  add("Study",
      {{"pebble",
        "make computation graphs, and find the fewest words to compute them (pebble games)",
        add_pebble},
       {"replay", "simulate caches of every size for a run or a trace", add_replay},
       {"trace", "run a kernel and write each of its reads and writes to a file", add_trace},
       {"table1", "compare counted words with Table 1 of arXiv:2410.09397", add_table1}});
  add("Many runs",
      {{"sweep", "run, count or time every point of a suite", add_sweep},
       {"report", "make an HTML page of a sweep", add_report},
       {"plot", "draw words, bounds, phases and block schedules, with gnuplot", add_plot}});
  add("Store", {{"store", "show, verify, import and export matrices on disk", add_store}});
  return subcommands;
}

void prepare_environment() {
  set_by_default("HWLOC_HIDE_ERRORS", "2");
  static_cast<void>(environment());
}

int run_redblue(int argc, char** argv, Transport* transport, const Complaint& complain) {
  std::vector<Subcommand> subcommands = redblue_subcommands(transport, nullptr);
  const auto tree = [&subcommands] { return command_tree(kName, kDescription, subcommands); };
  subcommands.push_back({"explore", "serve the explorer, a page with sliders, to a browser",
                         add_explore, "Web page"});
  const std::string shell = "Shell";
  subcommands.push_back({"manual", "write manual pages, for man",
                         [tree](CLI::App& app) { return add_manual(app, tree); }, shell});
  subcommands.push_back({"completion", "complete command lines in bash, zsh or fish",
                         [tree](CLI::App& app) { return add_completion(app, tree); }, shell});
  return run_command(argc, argv, kName, kDescription, subcommands, complain);
}

}  // namespace redblue
