#pragma once
// Lists the possible next words of a command line: subcommands, options, values and files. The
// shell scripts of `redblue completion bash` ask for the list, and need no knowledge of the
// command.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/commands/command_tree.hpp"

namespace redblue {

// Known words for each option type or argument name, in capitals: KERNEL. A type such as
// table|json|csv lists its own words.
using KnownWords = std::map<std::string, std::vector<std::string>>;

struct Candidate {
  std::string word;
  std::string help;
};

struct Completion {
  enum class Files { none, all, directories, behind_equals };
  Files files = Files::none;  // files that may come next; behind_equals: in NAME=FILE
  std::vector<Candidate> words;
};

// Returns the possible next words. `words` are the words after the program's name, up to and
// including the word being typed, which may be empty. The typed part does not filter the result.
// Exception: --option=value selects the option.
Completion completion(const CommandTree& root, const KnownWords& known,
                      std::span<const std::string> words);

// Adds the subcommand. It calls `tree` only when it needs the words.
Action add_completion(CLI::App& app, const std::function<CommandTree()>& tree);

}  // namespace redblue
