// redblue manual: manual pages, generated from the texts of --help.

#include "tools/commands/manual.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/system/build_info.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"

namespace redblue {
namespace {

// Escapes text for troff, so that it has no special letters and no line is a request.
std::string troff(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string result;
  for (const char c : text) {
    const auto* const escaped =
        std::ranges::find(kEscapes, c, &std::pair<char, std::string_view>::first);
    result += escaped == std::end(kEscapes) ? std::string(1, c) : std::string(escaped->second);
  }
  return result.starts_with('.') ? "\\&" + result : result;
}

std::string bold(std::string_view text) {
  return "\\fB" + troff(text) + "\\fR";
}
std::string italic(std::string_view text) {
  return "\\fI" + troff(text) + "\\fR";
}

// Returns the type of a value. troff may break a long list of words before each bar.
std::string type_text(const std::string& type) {
  std::string text = "\\fI";
  for (const char c : troff(type)) {
    text += c == '|' ? std::string("\\:|") : std::string(1, c);
  }
  return text + "\\fR";
}

// Makes a sentence of a text such as "count the words".
std::string as_sentence(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') {
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  }
  return text + (text.ends_with('.') ? "\n" : ".\n");
}

std::string joined_path(const CommandTree& tree, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(tree.path, between));
}

std::string synopsis(const CommandTree& tree) {
  std::string text = bold(joined_path(tree));
  if (!tree.subcommands.empty()) {
    return text + " " + italic("SUBCOMMAND") + " [" + italic("OPTION") + "...]\n";
  }
  for (const CommandArgument& argument : tree.arguments) {
    const std::string name = italic(argument.name) + (argument.several ? "..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text + " [" + italic("OPTION") + "...]\n";
}

std::string argument_list(const CommandTree& tree) {
  std::string text;
  for (const CommandArgument& argument : tree.arguments) {
    text += ".TP\n" + italic(argument.name) + "\n" + troff(argument.help) + "\n";
  }
  return text;
}

std::string option_list(const CommandTree& tree) {
  std::string text;
  for (const CommandOption& option : tree.options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) {
      names.push_back(bold(name));
    }
    text += fmt::format(".TP\n{}{}\n", fmt::join(names, ", "),
                        option.type.empty() ? "" : " " + type_text(option.type));
    text += troff(option.help) + (option.repeats ? " May be repeated." : "") + "\n";
  }
  return text;
}

std::string environment_list() {
  std::string text;
  for (const auto& [name, help] : kVariables) {
    text += fmt::format(".TP\n{}\n{}\n", bold(std::string(name)), troff(std::string(help)));
  }
  return text;
}

std::string page_section(std::string_view title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

constexpr std::string_view kExample =
    "redblue run backward/small --n 1000 --d 48 --M 1024 --verify\n"
    "redblue plan --n 4096 --d 64 --M 64K\n"
    "redblue run gradients/auto --mask causal --M 'L2*0.25' --in Q=Q.npy --in K=K.npy \\\n"
    "  --in V=V.npy --in dO=dO.npy --out dQ=dQ.npy --verify";
constexpr std::string_view kExitStatus =
    ".TP\n0\nDone.\n"
    ".TP\n1\nFailed: bad content of an input, a file, too little memory, or a wrong result.\n"
    ".TP\n2\nUsage: an unknown kernel or option, or a bad value.\n"
    ".TP\n3\nA difference from a baseline.\n";

std::string page_name(const CommandTree& tree) {
  return joined_path(tree, "-");
}

std::string see_also(const CommandTree& tree, const CommandTree& root) {
  std::vector<std::string> pages;
  if (&tree != &root) {
    pages.push_back(bold(page_name(root)) + "(1)");
  }
  for (const CommandTree& other : root.subcommands) {
    if (&other != &tree) {
      pages.push_back(bold(page_name(other)) + "(1)");
    }
  }
  return fmt::format("{}\n", fmt::join(pages, ",\n"));
}

std::string subcommand_list(const CommandTree& tree, bool have_pages) {
  std::string text;
  for (const CommandTree& inner : tree.subcommands) {
    if (have_pages) {
      text += ".TP\n" + bold(page_name(inner)) + "(1)\n" + troff(inner.help) + "\n";
    } else {
      text += ".SS " + bold(joined_path(inner)) + "\n" + as_sentence(troff(inner.help)) + ".PP\n" +
              synopsis(inner) + argument_list(inner) + option_list(inner);
    }
  }
  return text;
}

// Replaces bars, because a bar ends the cell of a Markdown table.
std::string replace_bars(std::string_view text, std::string_view with) {
  std::string replaced;
  for (const char c : text) {
    replaced += c == '|' ? with : std::string_view(&c, 1);
  }
  return replaced;
}

// Formats code for a Markdown table. A long list of words may break after each bar.
std::string code(std::string_view text) {
  return fmt::format("<code>{}</code>", replace_bars(text, "&#124;<wbr>"));
}

// Formats ordinary text for a Markdown table.
std::string cell(std::string_view text) {
  return replace_bars(text, "\\|");
}

bool of_all_commands(const CommandOption& option) {
  return option.names.back() == "--help" || option.names.back() == "--version";
}

std::string markdown_options(const CommandTree& tree) {
  std::vector<std::string> groups;
  for (const CommandOption& option : tree.options) {
    if (!of_all_commands(option) && std::ranges::find(groups, option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("\n| {} | |\n|---|---|\n", group);
    for (const CommandOption& option : tree.options) {
      if (option.group == group && !of_all_commands(option)) {
        const std::string value = option.type.empty() ? "" : " " + option.type;
        text += fmt::format("| {} | {}{} |\n",
                            code(fmt::format("{}", fmt::join(option.names, ", ")) + value),
                            cell(option.help), option.repeats ? "; may be repeated" : "");
      }
    }
  }
  return text;
}

std::string markdown(const CommandTree& tree) {
  std::string usage = joined_path(tree), text;
  if (!tree.subcommands.empty()) {
    for (const CommandTree& inner : tree.subcommands) {
      text += fmt::format("{}### {}\n\n{}\n{}", text.empty() ? "" : "\n", joined_path(inner),
                          as_sentence(inner.help), markdown(inner));
    }
    return text;
  }
  for (const CommandArgument& argument : tree.arguments) {
    const std::string name = argument.name + (argument.several ? "..." : "");
    usage += argument.required ? " " + name : " [" + name + "]";
  }
  text = fmt::format("```text\n{} [OPTION...]\n```\n", usage);
  if (!tree.arguments.empty()) {
    text += "\n| Argument | |\n|---|---|\n";
  }
  for (const CommandArgument& argument : tree.arguments) {
    text += fmt::format("| {} | {} |\n", code(argument.name), cell(argument.help));
  }
  return text + markdown_options(tree);
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandTree& root) {
  const auto page = [&](const CommandTree& tree) {
    const bool is_root = &tree == &root;
    std::string title = page_name(tree);
    std::ranges::transform(title, title.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    const std::string text =
        fmt::format(
            ".\\\" Made by `{} manual`.\n.TH \"{}\" 1 \"\" \"{} {}\" \"{} manual\"\n.nh\n.ad l\n",
            root.path.front(), title, root.path.front(), build_info::kVersion, root.path.front()) +
        page_section("NAME", fmt::format("{} \\- {}\n", page_name(tree), troff(tree.help))) +
        page_section("SYNOPSIS", synopsis(tree)) +
        page_section("DESCRIPTION", as_sentence(troff(tree.help))) +
        page_section("ARGUMENTS", argument_list(tree)) +
        page_section("SUBCOMMANDS", subcommand_list(tree, is_root)) +
        page_section("OPTIONS", option_list(tree)) +
        page_section("ENVIRONMENT", is_root ? environment_list() : "") +
        page_section("EXIT STATUS", std::string(kExitStatus)) +
        page_section("EXAMPLES", is_root ? ".EX\n" + troff(kExample) + "\n.EE\n" : "") +
        page_section("SEE ALSO", see_also(tree, root));
    return ManualPage{page_name(tree), text};
  };
  std::vector<ManualPage> pages = {page(root)};
  for (const CommandTree& subcommand : root.subcommands) {
    pages.push_back(page(subcommand));
  }
  return pages;
}

std::vector<ManualPage> markdown_pages(const CommandTree& root) {
  std::vector<ManualPage> pages;
  for (const CommandTree& subcommand : root.subcommands) {
    pages.push_back({page_name(subcommand), "## Usage\n\n" + markdown(subcommand)});
  }
  return pages;
}

Action add_manual(CLI::App& app, const std::function<CommandTree()>& tree) {
  struct Options {
    explicit Options(CLI::App& command)
        : subcommand(command, "subcommand", "subcommand to describe (default: redblue)"),
          format(command, "--format", "format of the pages (default: troff)", "troff|markdown"),
          out(command, "-o,--out", "write all pages to DIR", "DIR") {}
    OptionalArgument subcommand;
    TextOption format, out;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, tree] {
    const CommandTree root = tree();
    const auto format = options->format.get();
    const bool is_markdown = format && format->text == "markdown";
    if (format && !is_markdown && format->text != "troff") {
      throw UsageError(
          fmt::format("{} '{}': expected troff or markdown", format->from, format->text));
    }
    const std::vector<ManualPage> pages = is_markdown ? markdown_pages(root) : manual_pages(root);
    const auto wanted = options->subcommand.get();
    if (const auto out = options->out.get()) {
      if (wanted) {
        throw UsageError(fmt::format("{} has all pages: leave {} out", out->from, *wanted));
      }
      std::filesystem::create_directories(out->text);
      for (const ManualPage& page : pages) {
        write_whole(std::filesystem::path(out->text) / (page.name + (is_markdown ? ".md" : ".1")),
                    page.text);
      }
      return 0;
    }
    const std::string name = root.path.front() + (wanted ? "-" + *wanted : "");
    const auto found = std::ranges::find(pages, name, &ManualPage::name);
    if (found == pages.end()) {
      throw UsageError(fmt::format("no page is called {}: give a subcommand of `{} --help`", name,
                                   root.path.front()));
    }
    print(found->text);
    return 0;
  };
}

}  // namespace redblue
