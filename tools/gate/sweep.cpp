#include "tools/gate/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "memsim/errors.hpp"
#include "runtime/sweep/kept_points.hpp"
#include "runtime/system/journal.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/inputs.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/program.hpp"
#include "tools/gate/jobs.hpp"
#include "tools/gate/part.hpp"
#include "tools/gate/suite.hpp"
#include "tools/gate/swept.hpp"

namespace redblue {
namespace {

// Returns the source of the suite's points.
SuiteOrigin origin_of(const Suite& suite) {
  SuiteOrigin origin{.how = suite.how, .suite = suite.text, .program = program_fingerprint()};
  for (const SuitePoint& point : suite.points) {
    origin.points.push_back(to_string(Point{point.subject->name, point.arguments}));
    if (point.subject->fingerprints) {
      if (auto found = point.subject->fingerprints(point.arguments); !found.empty()) {
        origin.files[origin.points.back()] = std::move(found);
      }
    }
  }
  return origin;
}

// Returns the points finished by earlier calls, by name.
std::map<std::string, Swept> done_before(Journal& journal, const KeptHead& head,
                                         const std::string& directory) {
  std::map<std::string, Swept> done;
  if (journal.lines().empty()) {
    journal.append(to_line(head));
    return done;
  }
  KeptPoints kept = parse_kept(journal.lines(), journal.path().string());
  if (const std::string what = differing(kept.head, head); !what.empty()) {
    throw InputError(
        fmt::format("{} holds the points of another {}: take another directory, or remove this one",
                    directory, what));
  }
  for (Swept& swept : kept.points) {
    const std::string name = to_string(swept.point);
    done.insert_or_assign(name, std::move(swept));
  }
  return done;
}

// Returns the result of a point, and whether it is final. A failed point has a reason and no
// counts. An impossible request is final. A full disk is not, because a later call may succeed.
template <class Work>
std::pair<Swept, bool> outcome_of(const Point& point, const Work& work) {
  const auto failed = [&](const char* why, bool lasts) {
    return std::pair(nothing_swept(point, true, why), lasts);
  };
  try {
    return {work(), true};
  } catch (const Interrupted&) {
    throw;
  } catch (const ShapeMismatch& error) {  // a bug in a kernel, which may be fixed
    return failed(error.what(), false);
  } catch (const std::invalid_argument& error) {
    return failed(error.what(), true);
  } catch (const CountOverflow& error) {
    return failed(error.what(), true);
  } catch (const std::bad_alloc&) {
    return failed("out of memory", false);
  } catch (const std::exception& error) {
    return failed(error.what(), false);
  }
}

// Counts a running point that uses the disk.
class RunningOnDisk {
 public:
  RunningOnDisk(std::atomic<int>& count, bool on_disk) : count_(count), one_(on_disk ? 1 : 0) {
    count_ += one_;
  }
  RunningOnDisk(const RunningOnDisk&) = delete;
  RunningOnDisk& operator=(const RunningOnDisk&) = delete;
  ~RunningOnDisk() { count_ -= one_; }

 private:
  std::atomic<int>& count_;
  int one_;
};

// Ends the process one second after a signal. Points in memory leave no files and may take minutes,
// so it does not wait for them. It does wait for points `on_disks`, which first remove their files.
std::jthread ending_soon(std::function<std::string()> ending, const std::atomic<int>& on_disks) {
  if (caller() != nullptr) {  // a caller's process must not end; it stops the points itself
    return {};
  }
  const auto watch = [ending = std::move(ending), &on_disks](const std::stop_token& done) {
    using Clock = std::chrono::steady_clock;
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    std::optional<Clock::time_point> last;
    while (!done.stop_requested()) {
      never.wait_for(lock, done, std::chrono::milliseconds(50), [] { return false; });
      if (!last && !interruption().empty()) {
        last = Clock::now() + std::chrono::seconds(1);
      }
      if (last && Clock::now() > *last && on_disks == 0 && !done.stop_requested()) {
        StatusLine().clear();
        say(ending());
        std::_Exit(1);
      }
    }
  };
  try {
    return std::jthread(watch);
  } catch (const std::system_error&) {  // no thread is left: points end first
    return {};
  }
}

int sweep(const std::string& suite_path, const std::filesystem::path& directory,
          const SuitePart& part, const JobsOption& jobs, const SweptKernels& kernels) {
  const std::vector<Subject> subjects = kernels.subjects();
  const Suite suite = read_suite(suite_path, subjects, kernels.hows);
  std::ranges::for_each(suite.notes, say);
  // A timed point must run alone.
  if (suite.how == kTimed && jobs.given()) {
    throw UsageError(jobs.flag() + ": points that are timed run one at a time");
  }
  const unsigned at_a_time = suite.how == kTimed ? 1 : jobs.get();
  const KeptHead head{.origin = origin_of(suite), .part = part, .context = kernels.context()};
  std::filesystem::create_directories(directory);
  Journal journal(directory / kPointsFile);
  const std::map<std::string, Swept> before = done_before(journal, head, directory.string());

  std::vector<SuitePoint> asked;
  for (const std::size_t k : points_of(part, suite.points.size())) {
    asked.push_back(suite.points[k]);
  }
  if (asked.empty()) {
    say(fmt::format("part {} is empty: the suite has {}", to_string(part),
                    counted(std::ssize(suite.points), "point")));
  }
  std::vector<std::optional<Swept>> points(asked.size());
  std::vector<std::size_t> left;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const Point point{asked[k].subject->name, asked[k].arguments};
    if (const auto known = before.find(to_string(point)); known != before.end()) {
      points[k] = known->second;
    } else {
      left.push_back(k);
    }
  }
  if (left.size() < points.size()) {
    say(fmt::format("{} of {} points were there", points.size() - left.size(), points.size()));
  }
  std::atomic<std::size_t> kept = points.size() - left.size();
  std::atomic<int> on_disks = 0;
  const std::function<void()> stop = stop_if_asked();
  const auto ending = [&] {
    return fmt::format("{}: {} of {} are kept in {}; the same command continues", interruption(),
                       kept.load(), counted(std::ssize(points), "point"), directory.string());
  };
  try {
    const std::jthread watcher = ending_soon(ending, on_disks);
    std::mutex mutex;
    each_point(left.size(), at_a_time, "swept", [&](std::size_t k) {
      stop();
      const SuitePoint& asked_for = asked[left[k]];
      const Point point{asked_for.subject->name, asked_for.arguments};
      const RunningOnDisk running(on_disks, kernels.on_disk(point.arguments));
      const auto [swept, lasts] = outcome_of(point, [&] {
        return kernels.sweep_point(*asked_for.subject, asked_for.arguments, suite.how, stop);
      });
      const std::lock_guard lock(mutex);
      if (lasts) {
        journal.append(to_line(swept));
        ++kept;
      }
      points[left[k]] = swept;
    });
  } catch (const Interrupted&) {
    throw Interrupted(ending());
  }
  Sweep sweep{.how = suite.how, .suite = suite.text, .part = part};
  for (std::optional<Swept>& swept : points) {
    sweep.points.push_back(std::move(*swept));
  }
  write_whole((directory / kTableFile).string(), to_csv(sweep));
  write_whole((directory / kDocumentFile).string(), to_json(sweep, head.context));
  say_swept(sweep, directory);
  // A point that may succeed later is not kept.
  return kept < points.size() ? 1 : 0;
}

}  // namespace

Action add_sweep_of(CLI::App& app, SweptKernels kernels) {
  struct Options {
    Options(CLI::App& command, const std::vector<std::string>& hows)
        : suite(command, "suite",
                fmt::format("a suite, with \"how\" {} (-: standard input)", fmt::join(hows, ", "))),
          out(command, "-o,--out", "directory of the results; points that it already has are kept",
              "DIR"),
          part(command),
          jobs(command) {}
    Argument suite;
    TextOption out;
    PartOption part;
    JobsOption jobs;
  };
  const auto options = std::make_shared<Options>(app, kernels.hows);
  return [options, kernels = std::move(kernels)] {
    const auto out = options->out.get();
    if (!out) {
      throw UsageError("--out is missing: the directory that the sweep goes to");
    }
    if (out->text == "-") {
      throw UsageError(out->from + " -: a sweep is a directory, and no standard output");
    }
    for (const char* name : {kPointsFile, kTableFile, kDocumentFile}) {
      refuse_input({(std::filesystem::path(out->text) / name).string(), out->from},
                   options->suite.get());
    }
    return sweep(options->suite.get(), out->text, options->part.get().value_or(SuitePart()),
                 options->jobs, kernels);
  };
}

}  // namespace redblue
