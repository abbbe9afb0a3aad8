#pragma once
// Options of the `redblue pebble` commands: the graph, built from a problem or read from a file,
// and the game played on it.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/core_dags.hpp"
#include "runtime/pebble/game.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/options/problem.hpp"

namespace redblue {

// Returns the value with the name `text`. `from` is the flag, for messages. Throws: UsageError.
template <class Value, std::size_t count>
Value named(const std::string& text, const std::string& from,
            const std::array<std::pair<std::string_view, Value>, count>& values) {
  for (const auto& [name, value] : values) {
    if (text == name) {
      return value;
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [name, value] : values) {
    names.push_back(name);
  }
  throw UsageError(fmt::format("{} '{}': expected {} or {}", from, text,
                               fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
}

using GameName = std::pair<std::string_view, Game>;
inline constexpr std::array kGames = {
    GameName{"strict", Game::strict}, GameName{"sliding", Game::sliding},
    GameName{"once", Game::once}, GameName{"fma", Game::fma}, GameName{"partial", Game::partial}};

inline constexpr const char* kGraphHelp =
    "product, forward, backward, attention or gradients; forward-core, backward-core, g-core or "
    "gradients-core, what is between products with weights; or a graph in a file: .hdag, .dot or "
    ".gv, .mtx, or text";

// The options that describe the problem of a graph: sizes, mask, sparse operands and the shape of
// its sums.
class GraphOptions {
 public:
  explicit GraphOptions(CLI::App& app);

  // Returns the graph of the problem `name`, or of the file `name`. `sums` is the shape of a
  // problem's sums; without it --sums decides. Throws: UsageError, InputError.
  [[nodiscard]] Dag dag(const std::string& name, std::optional<Sums> sums = std::nullopt) const;
  // Returns the task of the dense problem `name`, without its M. `flag` is the option that needs
  // the task, for messages. Throws: UsageError.
  [[nodiscard]] Task task(const std::string& name, const std::string& flag) const;

 private:
  static Dag dag_of_core(const std::pair<std::string_view, Core>& core, const Settings& settings,
                         const Request& request, Sums sums);
  static Task task_of_problem(const std::string& name, const Settings& settings, Request& request);
  static void require_sizes(const Request& request);

  TableOptions table_;
  TextOption sums_;
};

// Returns whether `name` is the name of a problem. Any other name is a file.
bool is_problem(const std::string& name);
std::vector<std::string> problem_names();

// Throws: UsageError if M is less than `least`, the pebbles that some vertex needs in this game.
void require_enough(Index M, const std::string& from, Index least, Game game);

}  // namespace redblue
