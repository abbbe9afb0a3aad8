// The redblue command. Data goes to standard output, words to standard error. Exit codes:
// 0 done; 1 failed: an input's content, a file, the memory, a verification; 2 usage: the
// command line asks for what there is not.

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "memsim/errors.hpp"
#include "runtime/build_info.hpp"
#include "tools/command.hpp"
#include "tools/nearest.hpp"
#include "tools/print.hpp"
#include "tools/sizes.hpp"

namespace {

void check_subcommand(const CLI::App& app, std::string_view word) {
  std::vector<std::string_view> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  if (!word.starts_with('-') && std::ranges::find(names, word) == names.end()) {
    throw redblue::UsageError(fmt::format("no subcommand is called '{}': did you mean {}?", word,
                                          fmt::join(redblue::nearest(word, names), " or ")));
  }
}

int execute(int argc, char** argv) {
  using namespace redblue;
  CLI::App app(
      "Counts every word that an attention kernel moves between a fast memory of M words and a "
      "slow store, and computes its results.",
      "redblue");
  const std::string version = "redblue " + std::string(build_info::kVersion);
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  Action action;
  const auto add = [&](const char* name, const char* help, Action (*make)(CLI::App&)) {
    CLI::App& command = *app.add_subcommand(name, help);
    command.set_version_flag("--version", version);
    command.final_callback([&action, chosen = make(command)] { action = chosen; });
  };
  add("list", "the kernels; with --n and --d also the least M of each", add_list);
  add("info", "what this binary is, and what the machine offers it", add_info);
  add("count", "the words that a kernel will move, from its formulas", add_count);
  add("run", "run a kernel, counted", add_run);
  add("store", "matrices in a store on disk: see them, verify them, in and out", add_store);
  add("bounds", "how few words a problem can move, and how near our kernels come", add_bounds);
  add("plan", "the kernel that moves the fewest words, and the others", add_plan);
  add("measure", "run a kernel and measure a cache meanwhile", add_measure);
  add("calibrate", "find the M for this machine's caches, for --M auto", add_calibrate);
  add("trace", "run a kernel and write down its moves, for other programs", add_trace);
  add("plot", "pictures of what kernels do, by gnuplot", add_plot);

  try {
    if (argc > 1) {
      check_subcommand(app, argv[1]);
    }
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_words) {  // --help, --version
    std::ostringstream words;
    app.exit(asked_for_words, words, words);
    print(words.str());
    return 0;
  } catch (const CLI::Error& error) {
    throw UsageError(std::string(error.what()) + " (redblue --help)");
  }
  return action();
}

int complain(const char* what, int code) {
  redblue::say(what);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return execute(argc, argv);
  } catch (const redblue::UsageError& error) {
    return complain(error.what(), 2);
  } catch (const std::invalid_argument& error) {  // a request that cannot be met, M too small
    return complain(error.what(), 2);
  } catch (const redblue::CountOverflow& error) {
    return complain(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return complain("out of memory: take smaller n, m or d", 1);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}
