// redblue sweep: the points of a suite, each counted or timed, into a directory that figures and
// reports are made from.

#include "runtime/sweep.hpp"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <link.h>
#include <nlohmann/json.hpp>

#include "kernels/simd.hpp"
#include "runtime/journal.hpp"
#include "runtime/kernel_subjects.hpp"
#include "runtime/memory.hpp"
#include "runtime/whole_file.hpp"
#include "tools/command.hpp"
#include "tools/jobs.hpp"
#include "tools/machine.hpp"
#include "tools/print.hpp"
#include "tools/sizes.hpp"
#include "tools/suite.hpp"
#include "tools/swept.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTime = "time";

// This program, and what of redblue it has from shared libraries.
std::vector<std::string> program_files() {
  std::vector<std::string> files = {"/proc/self/exe"};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const std::string name = object->dlpi_name;
        if (name.find("libredblue_") != std::string::npos) {
          static_cast<std::vector<std::string>*>(found)->push_back(name);
        }
        return 0;
      },
      &files);
  return files;
}

// Of their bytes (FNV-1a): another build may count other words.
std::string program_fingerprint() {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string& file : program_files()) {
    for (const char byte : read_text(file)) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    }
  }
  return fmt::format("{:016x}", hash);
}

// The first line of a journal: what its points are of, and by whom.
Json head_of(const Suite& suite, const Topology& topology) {
  Json head = {{"suite", suite.text}, {"program", program_fingerprint()}};
  if (suite.how == kTime) {
    head["machine"] = {topology.model.value_or("unknown"), simd_target()};
  }
  return head;
}

// What was done before, by the names of points.
std::map<std::string, Swept> done_before(Journal& journal, const Json& head,
                                         const std::string& directory, const std::string& path) {
  std::map<std::string, Swept> done;
  if (journal.lines().empty()) {
    journal.append(head.dump() + "\n");
    return done;
  }
  const Json found = Json::parse(journal.lines().front(), nullptr, false);
  if (found != head) {
    const bool same_suite = found.is_object() && found.value("suite", Json()) == head["suite"];
    throw InputError(
        fmt::format("{} holds the points of another {}: take another directory, or remove this one",
                    directory, same_suite ? "build of redblue, or of another machine" : "suite"));
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

int sweep(const std::string& suite_path, const std::filesystem::path& directory,
          const JobsOption& jobs) {
  const std::vector<Subject> subjects = kernel_subjects();
  const Suite suite = read_suite(suite_path, subjects, {"run", "count", kTime});
  // What is timed has the machine to itself.
  if (suite.how == kTime && jobs.given()) {
    throw UsageError(jobs.said() + ": points that are timed run one at a time");
  }
  const unsigned at_a_time = suite.how == kTime ? 1 : jobs.get();
  const Topology topology = machine_topology();
  std::filesystem::create_directories(directory);
  const std::string path = directory / kPointsFile;
  Journal journal(path);
  const std::map<std::string, Swept> before =
      done_before(journal, head_of(suite, topology), directory.string(), path);

  Sweep sweep{.how = suite.how, .suite = suite.text, .points = {}};
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
  MemoryBudget memory;
  each_point(left.size(), at_a_time, "swept", [&](std::size_t k) {
    const SuitePoint& asked = suite.points[left[k]];
    const Point point{asked.subject->name, asked.arguments};
    Swept swept = [&] {
      try {
        return sweep_point(point, suite.how == "count" ? How::count : How::run, suite.how == kTime,
                           &memory);
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
  write(directory / kTableFile, to_csv(sweep));
  write(directory / kDocumentFile, to_json(sweep, topology));
  say(fmt::format("{} points in {}: {}, {}", points.size(), directory.string(), kTableFile,
                  kDocumentFile));
  return 0;
}

}  // namespace

Action add_sweep(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : suite(command, "suite", "a file of kernels and grids; how: run, count or time"),
          out(command, "-o,--out", "the directory; what it has of this suite is not done again",
              "DIR", Twin::of_command),
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
    if (out->text == "-") {
      throw UsageError(out->from + " -: a sweep is a directory, and no standard output");
    }
    return sweep(options->suite.get(), out->text, options->jobs);
  };
}

}  // namespace redblue
