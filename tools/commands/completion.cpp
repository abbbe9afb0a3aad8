// redblue completion: scripts for shells, and the possible next words of a command line.

#include "tools/commands/completion.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "runtime/observe/devices.hpp"
#include "runtime/report/as_rows.hpp"
#include "runtime/theory/planner.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/graph.hpp"

namespace redblue {
namespace {

using Files = Completion::Files;

// The scripts for each shell. The first line of the command's answer says which files may come
// next. Each further line is a word, a tab, and its description.
constexpr std::string_view kBash = R"(# Completion of NAME in bash.
_NAME() {
  # Words as the command sees them: bash cuts them at = and : where these are in COMP_WORDBREAKS.
  local -a words=()
  local word glue=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && (-n $glue || $word =~ ^[=:]+$) ]]; then
      words[-1]+=$word
      glue=
      [[ $word =~ ^[=:]+$ ]] && glue=1
    else
      words+=("$word")
    fi
  done
  local -a said
  mapfile -t said < <("${COMP_WORDS[0]}" completion words -- "${words[@]}" 2>/dev/null)
  COMPREPLY=()
  local current=${COMP_WORDS[COMP_CWORD]} typed=${words[-1]}
  [[ $current =~ ^[=:]+$ ]] && current=
  case ${said[0]} in
    all) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    directories) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    behind-equals)
      [[ $typed == *=* ]] && mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
  esac
  [[ ${#COMPREPLY[@]} -gt 0 ]] && compopt -o filenames 2>/dev/null
  local line
  for line in "${said[@]:1}"; do
    line=${line%%$'\t'*}
    [[ $line == "$current"* ]] && COMPREPLY+=("$line")
  done
  return 0
}
complete -F _NAME NAME
)";

constexpr std::string_view kZsh = R"(#compdef NAME
# Completion of NAME in zsh.
_NAME() {
  local -a said found
  said=("${(@f)$(${words[1]} completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
  local line help
  for line in "${(@)said[2,-1]}"; do
    help=${line#*$'\t'}
    found+=("${${line%%$'\t'*}//:/\\:}${help:+:$help}")
  done
  (( ${#found} )) && _describe -V word found
  case ${said[1]} in
    all) _files ;;
    directories) _files -/ ;;
    behind-equals) compset -P '*=' && _files ;;
  esac
}
if [[ ${funcstack[1]} == _NAME ]]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
)";

constexpr std::string_view kFish = R"(# Completion of NAME in fish.
function __NAME_candidates
    set -l current (commandline -ct)
    set -l words (commandline -opc) "$current"  # one that is empty, too
    set -l said ($words[1] completion words -- $words[2..-1] 2>/dev/null)
    set -l before (string match -r -- '^--[^=]*=' "$current"; or echo)
    set -l typed (string replace -r -- '^--[^=]*=' '' "$current")
    for line in $said[2..-1]
        echo $before$line
    end
    switch $said[1]
        case all
            for path in (__fish_complete_path $typed)
                echo $before$path
            end
        case directories
            for path in (__fish_complete_directories $typed)
                echo $before$path
            end
        case behind-equals
            if string match -q -- '*=*' $typed
                set -l name (string replace -r -- '=.*' '=' $typed)
                for path in (__fish_complete_path (string replace -r -- '^[^=]*=' '' $typed))
                    echo $before$name$path
                end
            end
    end
end
complete -c NAME -f -a '(__NAME_candidates)'
)";

KnownWords known_words() {
  KnownWords known;
  std::vector<std::string>& names = known["KERNEL"];
  for (const auto* all : {&kernels(), &sparse_kernels()}) {
    for (const Kernel& kernel : *all) {
      names.emplace_back(kernel.name);
    }
  }
  for (const AutoName& name : kAuto) {
    names.emplace_back(name.name);
  }
  for (const Device& device : devices()) {
    known["DEVICE"].push_back(device.name);
  }
  known["CACHES"] = known["DEVICE"];
  known["DEVICE"].emplace_back("this");
  for (const Project& project : projects()) {
    known["PROJECT"].push_back(project.name);
  }
  known["PROJECT"].emplace_back("all");
  known["PROBLEM"] = problem_names();
  return known;
}

std::string script(std::string_view text, const std::string& name) {
  std::string result;
  constexpr std::string_view kName = "NAME";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find(kName, at);
    result += text.substr(at, next - at);
    if (next == std::string_view::npos) {
      break;
    }
    result += name;
    at = next + kName.size();
  }
  return result;
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void add_words(Completion& completion, const std::string& name, const KnownWords& known) {
  if (const auto found = known.find(in_capitals(name)); found != known.end()) {
    for (const std::string& word : found->second) {
      completion.words.push_back({word, ""});
    }
  }
  if (name == "DEVICE" || name == "PROBLEM") {  // or a file that describes it
    completion.files = Files::all;
  }
}

Completion values_of(const CommandOption& option, const KnownWords& known) {
  Completion values;
  add_words(values, option.type, known);
  if (option.type.find('|') != std::string::npos) {
    for (std::size_t at = 0; at <= option.type.size();) {
      const std::size_t end = std::min(option.type.find('|', at), option.type.size());
      values.words.push_back({option.type.substr(at, end - at), ""});
      at = end + 1;
    }
  }
  if (option.type.ends_with("=FILE")) {
    values.files = Files::behind_equals;
  } else if (option.type.starts_with("FILE")) {
    values.files = Files::all;
  } else if (option.type == "DIR") {
    values.files = Files::directories;
  }
  return values;
}

Completion values_of(const CommandArgument& argument, const KnownWords& known) {
  Completion values;
  add_words(values, argument.name, known);
  if (argument.name == "directory") {
    values.files = Files::directories;
  } else if (argument.help.starts_with("NAME=FILE")) {
    values.files = Files::behind_equals;
  } else if (values.words.empty()) {
    values.files = Files::all;
  }
  return values;
}

const CommandOption* find_option(const CommandTree& tree, std::string_view name) {
  const auto found = std::ranges::find_if(tree.options, [&](const CommandOption& option) {
    return std::ranges::find(option.names, name) != option.names.end();
  });
  return found == tree.options.end() ? nullptr : &*found;
}

std::string answer_of(const Completion& completion) {
  std::string text = completion.files == Files::none          ? "none"
                     : completion.files == Files::all         ? "all"
                     : completion.files == Files::directories ? "directories"
                                                              : "behind-equals";
  text += '\n';
  for (const auto& [word, help] : completion.words) {
    text += word + '\t' + help + '\n';
  }
  return text;
}

}  // namespace

Completion completion(const CommandTree& root, const KnownWords& known,
                      std::span<const std::string> words) {
  if (words.empty()) {
    return {};
  }
  const CommandTree* tree = &root;
  const std::string& typed = words.back();
  auto word = words.begin();
  const auto last = words.end() - 1;
  for (; word != last; ++word) {
    const auto inner = std::ranges::find_if(tree->subcommands, [&](const CommandTree& subcommand) {
      return subcommand.path.back() == *word;
    });
    if (inner == tree->subcommands.end()) {
      break;
    }
    tree = &*inner;
  }
  std::size_t arguments = 0;
  const CommandOption* waiting = nullptr;  // the option before this word, which needs a value
  for (; word != last; ++word) {
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (!word->starts_with('-')) {
      ++arguments;
    } else if (const CommandOption* option = find_option(*tree, *word);
               option != nullptr && !option->type.empty()) {
      waiting = option;
    }
  }
  if (waiting != nullptr) {
    return values_of(*waiting, known);
  }
  if (typed.starts_with("--") && typed.find('=') != std::string::npos) {
    const CommandOption* option = find_option(*tree, typed.substr(0, typed.find('=')));
    return option == nullptr ? Completion{} : values_of(*option, known);
  }
  if (typed.starts_with('-')) {
    Completion options;
    for (const CommandOption& option : tree->options) {
      options.words.push_back({option.names.back(), option.help});
    }
    return options;
  }
  if (!tree->subcommands.empty()) {
    Completion names;
    for (const CommandTree& subcommand : tree->subcommands) {
      names.words.push_back({subcommand.path.back(), subcommand.help});
    }
    return names;
  }
  if (!tree->arguments.empty() &&
      (arguments < tree->arguments.size() || tree->arguments.back().several)) {
    return values_of(tree->arguments[std::min(arguments, tree->arguments.size() - 1)], known);
  }
  return {};
}

Action add_completion(CLI::App& app, const std::function<CommandTree()>& tree) {
  const auto action = std::make_shared<Action>();
  const std::string name = program_name(app);
  app.require_subcommand(1);
  constexpr std::pair<const char*, std::string_view> kShells[] = {
      {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  for (const auto& [shell, text] : kShells) {
    add_subcommand(app, shell, fmt::format("the script for {}", shell))
        .final_callback([action, name, text = text] {
          *action = [name, text] {
            print(script(text, name));
            return 0;
          };
        });
  }
  CLI::App& words_command =
      add_subcommand(app, "words", "for these scripts: list possible next words");
  const auto words = std::make_shared<std::vector<std::string>>();
  words_command.add_option(
      "words", *words,
      "after --: the words of the command line, up to the one that is being typed");
  words_command.final_callback([action, words, tree] {
    *action = [words, tree] {
      const CommandTree root = tree();
      KnownWords known = known_words();
      for (const CommandTree& subcommand : root.subcommands) {
        known["SUBCOMMAND"].push_back(subcommand.path.back());
      }
      print(answer_of(completion(root, known, *words)));
      return 0;
    };
  });
  return [action] { return (*action)(); };
}

}  // namespace redblue
