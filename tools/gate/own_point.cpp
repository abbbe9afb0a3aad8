#include "tools/gate/own_point.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/gate/isolated.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/trace/phase_clock.hpp"
#include "tools/gate/own_nest.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {
namespace {

// Names that a size cannot have: options of subcommands, and keys of suites with another meaning.
constexpr std::array<std::string_view, 14> kTaken = {
    "kernel",    "help", "version",  "format",    "out",  "din",   "events",
    "din-words", "at",   "cachesim", "per-phase", "bare", "inner", "at_most"};

// Returns the description of a run, for traces and replays.
FollowedRun followed_of(const Point& point) {
  FollowedRun run{.kernel = point.subject, .sizes = {}, .text = to_string(point)};
  for (const auto& [name, value] : point.arguments) {
    if (name == "M") {
      run.M = std::get<Index>(value);
    } else {
      run.sizes.emplace_back(name, std::get<Index>(value));
    }
  }
  return run;
}

const OwnKernel& kernel_of(const Point& point) {
  return *std::ranges::find(registered_kernels(), point.subject,
                            [](const OwnKernel& each) { return each.subject.name; });
}

// Returns a subject that counts the nest of the kernel at each point, and refuses a run with other
// words.
Subject with_nest(const OwnKernel& kernel) {
  Subject subject = kernel.subject;
  subject.check = [file = kernel.nest, name = subject.name](const Arguments& arguments) {
    static_cast<void>(nest_words(file, name, arguments));
  };
  if (!subject.formula) {
    subject.compares_formula = true;
    subject.formula = [file = kernel.nest, name = subject.name](const Arguments& arguments) {
      return nest_words(file, name, arguments);
    };
  }
  subject.run = [file = kernel.nest, name = subject.name,
                 work = kernel.work](const Arguments& arguments) {
    Machine machine(arguments["M"]);
    const NestWitness witness(machine);
    work(machine, arguments);
    const RunCounts counts = final_counts(machine);
    witness.compare(file, {name, arguments}, counts);
    return counts;
  };
  return subject;
}

}  // namespace

std::vector<OwnKernel>& registered_kernels() {
  static std::vector<OwnKernel> kernels;
  return kernels;
}

const std::vector<Subject>& own_kernels() {
  static const std::vector<Subject> kernels = [] {
    std::vector<Subject> all;
    for (const OwnKernel& kernel : registered_kernels()) {
      all.push_back(isolated(kernel.nest.empty() ? kernel.subject : with_nest(kernel)));
    }
    return all;
  }();
  return kernels;
}

std::string wrong_with(const Subject& subject) {
  const auto plain = [](const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("/-_.").find(static_cast<char>(c)) != std::string_view::npos;
    });
  };
  if (std::ranges::count(registered_kernels(), subject.name,
                         [](const OwnKernel& kernel) { return kernel.subject.name; }) > 1) {
    return "two have this name";
  }
  if (!plain(subject.name)) {
    return "a name is of letters, digits and / - _ .";
  }
  for (const Parameter& size : subject.parameters) {
    if (!plain(size.name) || std::ranges::find(kTaken, size.name) != kTaken.end() ||
        std::ranges::count(subject.parameters, size.name, &Parameter::name) > 1) {
      return fmt::format("a size cannot be called '{}'", size.name);
    }
  }
  return "";
}

PointOptions::PointOptions(CLI::App& app) : kernel_(app, "kernel", "a kernel (see `list`)") {
  for (const Subject& subject : own_kernels()) {
    for (const Parameter& parameter : subject.parameters) {
      if (std::ranges::find(names_, parameter.name) == names_.end()) {
        names_.push_back(parameter.name);
        sizes_.emplace_back(app, "--" + parameter.name, parameter.help, "SIZE");
      }
    }
  }
}

PointOptions::Asked PointOptions::get() const {
  const Subject& subject = find_subject(own_kernels(), kernel_.get(), {});
  Arguments given;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    if (const auto size = sizes_[k].get()) {
      if (names_[k] != "M") {
        given.set(names_[k], parse_size(size->text, size->from));
        continue;
      }
      const FastMemory memory = parse_fast_memory(size->text, size->from);
      if (!std::holds_alternative<Index>(memory)) {
        throw UsageError(
            fmt::format("{} '{}': expected words, or bytes as 32KiB", size->from, size->text));
      }
      given.set(names_[k], std::get<Index>(memory));
    }
  }
  return {&subject, complete(subject, given)};
}

void naming(const Point& point, const std::function<void()>& work) {
  const auto named = [&](const std::exception& error) {
    return fmt::format("{}: {}", to_string(point), error.what());
  };
  try {
    work();
  } catch (const FastMemoryOverflow& error) {  // M is too small
    throw UsageError(named(error));
  } catch (const FastMemoryTooSmall& error) {  // redblue's kernels check M before they run
    throw UsageError(named(error));
  } catch (const CountOverflow& error) {
    throw UsageError(named(error));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // the kernel's fault, not the user's
    throw std::runtime_error(named(error));
  }
}

void follow(const PointOptions::Asked& asked,
            const std::function<void(Machine& machine, const FollowedRun& run,
                                     const std::function<RunCounts()>& work)>& follow) {
  const Point point{asked.subject->name, asked.arguments};
  const OwnKernel& kernel = kernel_of(point);
  naming(point, [&] {
    in_child([&] {
      Machine machine(point.arguments["M"]);
      follow(machine, followed_of(point), [&] {
        const StdoutToStderr aside;
        kernel.work(machine, point.arguments);
        return final_counts(machine);
      });
    });
  });
}

RunCounts timed(const Point& point) {
  const OwnKernel& kernel = kernel_of(point);
  return counted_in_child([&] {
    Machine machine(point.arguments["M"]);
    const PhaseClock clock(machine);
    {
      const StdoutToStderr aside;
      kernel.work(machine, point.arguments);
    }
    RunCounts::Seconds seconds{.phases = {}, .total = clock.total()};
    RunCounts counts = final_counts(machine);
    for (const PhaseCounts& phase : counts.phases) {
      seconds.phases.push_back(clock.seconds(phase.path));
    }
    counts.seconds = std::move(seconds);
    return counts;
  });
}

}  // namespace redblue
