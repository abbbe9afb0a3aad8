#include "tools/commands/redblue.hpp"

#include <memory>
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

namespace redblue {
namespace {

constexpr const char* kName = "redblue";

}  // namespace

std::vector<Subcommand> redblue_subcommands(Transport* transport, Arrays* arrays) {
  struct Shared {
    MemoryBudget memory;  // of the points that a gate runs at the same time
    Sparsities sparsities;
  };
  const auto shared = std::make_shared<Shared>();
  std::vector<Subcommand> subcommands = {
      {"list", "the kernels; with --n and --d also the least M of each", add_list},
      {"info", "what this binary is, and what the machine offers it", add_info},
      {"count", "the words that a kernel will move, from its formulas", add_count},
      {"run", "run a kernel, counted",
       [transport, arrays](CLI::App& app) { return add_run(app, transport, arrays); }},
      {"store", "matrices in a store on disk: see them, verify them, in and out", add_store},
      {"bounds", "how few words a problem can move, and how near our kernels come", add_bounds},
      {"plan", "the kernel that moves the fewest words, and the others", add_plan},
      {"curve", "words of all kernels and their bound against M, n or d; the M for so few words",
       add_curve},
      {"measure", "run a kernel and measure a cache meanwhile", add_measure},
      {"calibrate", "find the M for this machine's caches, for --M auto",
       [transport](CLI::App& app) { return add_calibrate(app, transport); }},
      {"table1", "the paper's Table 1, each cell beside the power law of the words counted",
       add_table1},
      {"sweep", "count or time the points of a suite, for figures and reports", add_sweep},
      {"merge", "parts of a sweep or of a baseline, made on several machines, as one", add_merge},
      {"trace", "run a kernel and write down its moves, for other programs", add_trace},
      {"pebble", "computations as graphs, and the red-blue pebble game on them", add_pebble},
      {"replay", "a trace in caches of every size: LRU, and the fewest reads", add_replay},
      {"plot", "pictures of what kernels do, by gnuplot", add_plot},
      {"history", "the words of a baseline's points through its commits in git", add_history},
      {"report", "a sweep as one HTML page: figures, tables, the machine", add_report},
  };
  const std::vector<Subcommand> gate = gate_subcommands([shared] {
    return kernel_subjects(&shared->memory, &shared->sparsities, stop_if_caller_asks());
  });
  subcommands.insert(subcommands.end(), gate.begin(), gate.end());
  return subcommands;
}

void prepare_environment() {
  set_by_default("HWLOC_HIDE_ERRORS", "2");
  static_cast<void>(environment());
}

int run_redblue(int argc, char** argv, Transport* transport, const Complaint& complain) {
  std::vector<Subcommand> subcommands = redblue_subcommands(transport, nullptr);
  const auto tree = [&subcommands] { return command_tree(kName, kDescription, subcommands); };
  subcommands.push_back(
      {"manual", "manual pages, for man", [tree](CLI::App& app) { return add_manual(app, tree); }});
  subcommands.push_back({"completion", "command lines completed by bash, zsh or fish",
                         [tree](CLI::App& app) { return add_completion(app, tree); }});
  return run_command(argc, argv, kName, kDescription, subcommands, complain);
}

}  // namespace redblue
