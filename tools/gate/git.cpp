#include "tools/gate/git.hpp"

#include <csignal>
#include <stdexcept>

#include "runtime/system/environment.hpp"

namespace redblue {

std::optional<Ended> run_git(const std::vector<std::string>& words,
                             const std::filesystem::path& directory) {
  const char* const search = variable("PATH");
  const auto git = find_program("git", search == nullptr ? "" : search);
  if (!git) {
    return std::nullopt;
  }
  std::vector<std::string> all = {git->string(), "-C",
                                  directory.empty() ? "." : directory.string()};
  all.insert(all.end(), words.begin(), words.end());
  Ended ended;
  {
    const ScratchDirectory scratch(temporary_directory());
    ended = run_program(all, {"GIT_OPTIONAL_LOCKS=0"}, scratch.path());
  }
  if (ended.interrupted != 0) {
    std::raise(ended.interrupted);
    throw std::runtime_error("interrupted");
  }
  return ended;
}

std::optional<std::string> git_says(const std::vector<std::string>& words,
                                    const std::filesystem::path& directory) {
  const std::optional<Ended> ended = run_git(words, directory);
  return ended && ended->code == 0 && ended->signal == 0 ? std::optional(ended->out) : std::nullopt;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace redblue
