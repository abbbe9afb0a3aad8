// redblue history: the words of a baseline through its commits in git.

#include "runtime/gate/history.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nearest.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/git.hpp"
#include "tools/gate/suite.hpp"
#include "tools/gate/tabled.hpp"

namespace redblue {
namespace {

struct HistoryAsked {
  explicit HistoryAsked(CLI::App& command)
      : baseline(command, "baseline", "a baseline that git tracks"),
        points(command, "--point",
               "only these points: a name as `check` prints it, or a kernel; * matches anything",
               "PATTERN", {}, true),
        metric(command, "--metric",
               "words, reads, writes, index_reads, index_writes, peak or least_M (default: words)",
               "[PHASE:]METRIC"),
        since(command, "--since", "only commits after this tag, branch or hash", "REV") {}
  Argument baseline;
  TextOption points, metric, since;
};

// The history of one file in its git repository.
class Versions {
 public:
  explicit Versions(const std::string& path)
      : path_(path),
        directory_(directory_of(path)),
        name_("./" + std::filesystem::path(path).filename().string()) {
    if (is_standard_input(path)) {
      throw UsageError("-: standard input has no history: name a baseline that is committed");
    }
    if (const auto ended = run_git({"rev-parse", "--is-shallow-repository"}, directory_); !ended) {
      throw std::runtime_error("git is unavailable: there is none along PATH: install git");
    } else if (ended->code != 0) {
      throw InputError(
          fmt::format("'{}' is in no repository of git: {}", path, first_line(ended->err)));
    } else {
      shallow_ = first_line(ended->out) == "true";
    }
  }

  [[nodiscard]] bool shallow() const { return shallow_; }

  // Returns the commits that changed the file, the oldest first. With `since`, returns only later
  // commits, preceded by the commit that gave the file its contents at `since`. Throws: UsageError
  // if git does not know `since`; InputError if no commit is left.
  [[nodiscard]] std::vector<Commit> commits(const std::optional<Given>& since) {
    std::string range = "HEAD";
    if (since) {
      const auto known = git_says(
          {"rev-parse", "--verify", "--quiet", "--end-of-options", since->text + "^{commit}"},
          directory_);
      if (!known) {
        throw UsageError(
            fmt::format("{} '{}': git knows no such commit", since->from, since->text));
      }
      before_ = first_line(*known);
      range = before_ + "..HEAD";
    }
    const InputError never(fmt::format("'{}' was never committed: git add it, and commit", path_));
    if (!git_says({"rev-parse", "--verify", "--quiet", "HEAD"}, directory_)) {
      throw never;
    }
    std::vector<Commit> commits = log({range});
    if (commits.empty() && since) {
      throw InputError(fmt::format("'{}': no commit after {} changed it", path_, since->text));
    }
    if (commits.empty()) {
      throw never;
    }
    if (since) {
      const std::vector<Commit> there = log({"--max-count=1", before_});
      commits.insert(commits.begin(), there.begin(), there.end());
    }
    return commits;
  }

  // Returns the recording at a commit. If the version is not a valid recording, prints a message
  // and leaves it out.
  [[nodiscard]] std::optional<Recording> at(const Commit& commit) const {
    const std::string from = fmt::format("{}:{}", commit.short_hash, path_);
    const auto text = git_says({"cat-file", "blob", commit.hash + ":" + name_}, directory_);
    if (!text) {
      say(from + " is not there: the commit is left out");
      return std::nullopt;
    }
    try {
      return parse_recording(*text, from);
    } catch (const InputError& error) {
      say(fmt::format("{}: the commit is left out", error.what()));
      return std::nullopt;
    }
  }

  // Returns the points at `since`; empty without valid points.
  [[nodiscard]] std::vector<RecordedPoint> before() const {
    const auto text = before_.empty()
                          ? std::nullopt
                          : git_says({"cat-file", "blob", before_ + ":" + name_}, directory_);
    try {
      return text ? parse_recording(*text, path_).points : std::vector<RecordedPoint>();
    } catch (const InputError&) {
      return {};
    }
  }

 private:
  // Returns the commits in the range `which` that changed the file, the oldest first.
  [[nodiscard]] std::vector<Commit> log(const std::vector<std::string>& which) const {
    std::vector<std::string> words = {"-c",
                                      "i18n.logOutputEncoding=UTF-8",
                                      "-c",
                                      "log.follow=false",
                                      "--literal-pathspecs",
                                      "log",
                                      "--first-parent",
                                      "--no-show-signature",
                                      "--no-color",
                                      "--reverse",
                                      "--format=%H%x00%h%x00%cs%x00%an%x00%s"};
    words.insert(words.end(), which.begin(), which.end());
    words.insert(words.end(), {"--", name_});
    const auto said = run_git(words, directory_);
    if (said->code != 0) {
      throw InputError(fmt::format("'{}': {}", path_, first_line(said->err)));
    }
    std::vector<Commit> commits;
    std::istringstream lines(said->out);
    for (std::string line; std::getline(lines, line);) {
      std::vector<std::string> parts(1);
      for (const char c : line) {
        if (c == '\0') {
          parts.emplace_back();
        } else {
          parts.back() += c;
        }
      }
      parts.resize(5);
      commits.push_back({parts[0], parts[1], parts[2], parts[3], parts[4]});
    }
    return commits;
  }

  std::string path_;
  std::filesystem::path directory_;
  std::string name_;  // file name for git, relative to the directory
  std::string before_;
  bool shallow_ = false;
};

// Keeps the points that match a pattern. Throws: UsageError for a pattern without a match.
void choose(const std::vector<Given>& patterns, History& history) {
  if (patterns.empty()) {
    return;
  }
  std::vector<std::string> names;
  std::vector<bool> meant(history.lines.size());
  for (const History::Line& line : history.lines) {
    names.push_back(to_string(line.point));
  }
  for (const Given& pattern : patterns) {
    bool any = false;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (matches(pattern.text, names[k]) ||
          matches(pattern.text, history.lines[k].point.subject)) {
        meant[k] = any = true;
      }
    }
    if (!any) {
      const std::vector<std::string_view> all(names.begin(), names.end());
      throw UsageError(fmt::format("{} '{}': no point is called so: did you mean '{}'?",
                                   pattern.from, pattern.text,
                                   fmt::join(nearest(pattern.text, all), "' or '")));
    }
  }
  std::vector<History::Line> left;
  for (std::size_t k = 0; k < meant.size(); ++k) {
    if (meant[k]) {
      left.push_back(std::move(history.lines[k]));
    }
  }
  history.lines = std::move(left);
}

History read_history(const HistoryAsked& asked) {
  MetricAsked metric;
  if (const auto given = asked.metric.get()) {
    try {
      metric = parse_metric(given->text);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{} {}", given->from, error.what()));
    }
  }
  const std::string path = asked.baseline.get();
  Versions versions(path);
  std::vector<Version> all;
  for (Commit& commit : versions.commits(asked.since.get())) {
    if (std::optional<Recording> recording = versions.at(commit)) {
      all.push_back({std::move(commit), std::move(recording->points)});
    }
  }
  if (all.empty()) {
    throw InputError(fmt::format("'{}': no version of it is a recording", path));
  }
  History history = history_of(path, metric, all, versions.before());
  history.shallow = versions.shallow();
  choose(asked.points.all(), history);
  const bool any = std::ranges::any_of(history.lines, [](const History::Line& line) {
    return std::ranges::any_of(
        line.values, [](const History::Value& value) { return value.number.has_value(); });
  });
  if (!any) {
    throw InputError(fmt::format("{}: no point has {}", history.file, history.metric));
  }
  if (history.shallow) {
    say("the clone is shallow: what it was before is not there: git fetch --unshallow");
  }
  return history;
}

}  // namespace

Action add_history(CLI::App& app) {
  return tabled(app, read_history, history_picture);
}

}  // namespace redblue
