// redblue sweep: the points of a suite, each counted or timed, into a directory that figures and
// reports are made from.

#include "runtime/sweep.hpp"

#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "runtime/journal.hpp"
#include "runtime/kernel_subjects.hpp"
#include "runtime/whole_file.hpp"
#include "tools/command.hpp"
#include "tools/jobs.hpp"
#include "tools/machine.hpp"
#include "tools/print.hpp"
#include "tools/sizes.hpp"
#include "tools/suite.hpp"

namespace redblue {
namespace {

constexpr const char* kTime = "time";

// What was done before, by the names of points. The first line of a journal is the suite's.
std::map<std::string, Swept> done_before(Journal& journal, const std::string& suite,
                                         const std::string& directory, const std::string& path) {
  const std::string head = fmt::format("{:?}", suite);
  std::map<std::string, Swept> done;
  if (journal.lines().empty()) {
    journal.append(head + "\n");
    return done;
  }
  if (journal.lines().front() != head) {
    throw InputError(fmt::format(
        "{} holds the points of another suite: take another directory, or remove this one",
        directory));
  }
  for (std::size_t k = 1; k < journal.lines().size(); ++k) {
    Swept swept = parse_line(journal.lines()[k], fmt::format("{}, line {}", path, k + 1));
    done.insert_or_assign(to_string(swept.point), std::move(swept));
  }
  return done;
}

void write(const std::filesystem::path& path, const std::string& text) {
  WholeFile file(path);
  file.append(text);
  file.finish();
  file.commit();
}

int sweep(const std::string& suite_path, const std::filesystem::path& directory, unsigned jobs) {
  const std::vector<Subject> subjects = kernel_subjects();
  const Suite suite = read_suite(suite_path, subjects, {"run", "count", kTime});
  const std::string text = read_text(suite_path);
  std::filesystem::create_directories(directory);
  const std::string path = directory / "points.jsonl";
  Journal journal(path);
  const std::map<std::string, Swept> before = done_before(journal, text, directory.string(), path);

  Sweep sweep{.how = suite.how, .suite = text, .points = {}};
  std::vector<std::optional<Swept>> points(suite.points.size());
  std::vector<std::size_t> left;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const Point point{suite.points[k].subject->name, suite.points[k].arguments};
    if (const auto known = before.find(to_string(point)); known != before.end()) {
      points[k] = known->second;
    } else {
      left.push_back(k);
    }
  }
  if (left.size() < points.size()) {
    say(fmt::format("{} of {} points were there", points.size() - left.size(), points.size()));
  }
  std::mutex mutex;
  // What is timed has the machine to itself.
  each_point(left.size(), suite.how == kTime ? 1 : jobs, "swept", [&](std::size_t k) {
    const SuitePoint& asked = suite.points[left[k]];
    const Point point{asked.subject->name, asked.arguments};
    Swept swept = [&] {
      try {
        return sweep_point(point, suite.how == "count" ? How::count : How::run, suite.how == kTime);
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", to_string(point), error.what()));
      }
    }();
    const std::lock_guard lock(mutex);
    journal.append(to_line(swept));
    points[left[k]] = std::move(swept);
  });
  for (std::optional<Swept>& swept : points) {
    sweep.points.push_back(std::move(*swept));
  }
  write(directory / "sweep.csv", to_csv(sweep));
  write(directory / "sweep.json", to_json(sweep, machine_topology()));
  say(fmt::format("{} points in {}: sweep.csv, sweep.json", points.size(), directory.string()));
  return 0;
}

}  // namespace

Action add_sweep(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : suite(command, "suite", "a file of kernels and grids; how: run, count or time"),
          out(command, "-o,--out", "the directory; what it has of this suite is not done again",
              "DIR"),
          jobs(command) {}
    Argument suite;
    TextOption out;
    JobsOption jobs;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const auto out = options->out.get();
    if (!out) {
      throw UsageError("--out is missing: the directory that the sweep goes to");
    }
    return sweep(options->suite.get(), out->text, options->jobs.get());
  };
}

}  // namespace redblue
