#pragma once
// What may come next on a command line: subcommands, options, the words that they take, and files.
// Shells ask for it by short scripts, `redblue completion bash`, that know nothing of the command.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/cli/command.hpp"
#include "tools/commands/command_tree.hpp"

namespace redblue {

// Words by the type of an option, or the name of an argument, in capitals: KERNEL. Types as
// table|json|csv say theirs.
using KnownWords = std::map<std::string, std::vector<std::string>>;

struct Candidate {
  std::string word;
  std::string help;
};

struct Completion {
  enum class Files { none, all, directories, behind_equals };
  Files files = Files::none;  // that may be there, too; behind_equals: of NAME=FILE
  std::vector<Candidate> words;
};

// `words` are those behind the program's name, up to the one that is typed, which may be empty.
// What the shell has of it is not taken into account, but for the option in --option=value.
Completion completion(const CommandTree& root, const KnownWords& known,
                      std::span<const std::string> words);

// `tree` is called where it is needed alone.
Action add_completion(CLI::App& app, const std::function<CommandTree()>& tree);

}  // namespace redblue
