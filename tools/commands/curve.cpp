// redblue curve: words moved by all kernels for a problem, or their time, and the lower bound,
// against M, n or d. For a given number of words, also the least M that is enough and its kernel.

#include "runtime/report/curve.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/gate/tabled.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/task.hpp"

namespace redblue {
namespace {

struct CurveAsked {
  explicit CurveAsked(CLI::App& command)
      : task(command),
        over(command, "--over", "variable on the axis (default: M)", "M|n|d"),
        from(command, "--from",
             "its smallest value (default for M: the least that any kernel needs)", "SIZE"),
        to(command, "--to", "its largest value (default for M: where words stop falling)", "SIZE"),
        words(command, "--words", "find the least M at which a kernel moves at most WORDS",
              "WORDS"),
        bytes(command, "--bytes", "like --words, in bytes, such as 64MiB", "BYTES"),
        objective(command, "--objective",
                  "words: fewest words; time: least time, by the rates of `redblue calibrate` or "
                  "built-in ones (default: words)",
                  "words|time") {}
  TaskOptions task;
  TextOption over, from, to, words, bytes, objective;
};

// Returns the rates if times are asked for. Throws: UsageError.
std::optional<Rates> rates_of(const CurveAsked& asked) {
  const auto objective = asked.objective.get();
  if (!objective || objective->text == "words") {
    return std::nullopt;
  }
  if (objective->text != "time") {
    throw UsageError(
        fmt::format("{} '{}': expected words or time", objective->from, objective->text));
  }
  for (const TextOption* option : {&asked.words, &asked.bytes}) {
    if (option->get()) {
      throw UsageError(fmt::format("{}: it finds an M by its words: leave out {} time",
                                   option->flag(), objective->from));
    }
  }
  return machine_rates();
}

Curve::Over over_of(const TextOption& option) {
  const auto given = option.get();
  if (!given) {
    return Curve::Over::M;
  }
  for (const Curve::Over over : {Curve::Over::M, Curve::Over::n, Curve::Over::d}) {
    if (given->text == to_string(over)) {
      return over;
    }
  }
  throw UsageError(fmt::format("{} '{}': expected M, n or d", given->from, given->text));
}

std::optional<Index> size_of(const TextOption& option) {
  const auto given = option.get();
  return given ? std::optional(parse_size(given->text, given->from)) : std::nullopt;
}

// Returns the number of words of --words or --bytes, if given.
std::optional<Words> words_of(const CurveAsked& asked) {
  const auto words = asked.words.get(), bytes = asked.bytes.get();
  if (words && bytes) {
    throw UsageError(fmt::format("{} {}: {} says how many; give one of the two", bytes->from,
                                 bytes->text, words->from));
  }
  if (bytes) {
    const auto width = asked.task.settings().first_of({"word"});
    const Index of_word = width && width->text == "2" ? 2 : kFloatBytes;
    return Words(parse_bytes(bytes->text, bytes->from, of_word) / of_word);
  }
  return words ? std::optional<Words>(parse_size(words->text, words->from)) : std::nullopt;
}

// Returns the sizes of the curve. Without --from or --to, the ends are the ends of `all`.
std::vector<Index> sizes_of(const CurveAsked& asked, const std::optional<std::vector<Index>>& all) {
  const std::optional<Index> from = size_of(asked.from), to = size_of(asked.to);
  const auto end = [&](const TextOption& option, const std::optional<Index>& size, bool first) {
    if (!size && !all) {
      throw UsageError(fmt::format("{} is missing: a size, with {} {}", option.flag(),
                                   asked.over.flag(), asked.over.get()->text));
    }
    return size ? *size : first ? all->front() : all->back();
  };
  const Index least = end(asked.from, from, true), most = end(asked.to, to, false);
  if (most < least && !to) {
    throw UsageError(fmt::format("{} {}: words no longer fall beyond {}: give a {}, too",
                                 asked.from.flag(), least, most, asked.to.flag()));
  }
  if (most < least) {
    throw UsageError(fmt::format("{} {}: from {} on there is nothing up to it: give a larger one",
                                 asked.to.flag(), most, least));
  }
  return curve_sizes(least, most);
}

// Refuses masks from files: they have one fixed shape.
void refuse_files(const Settings& settings, const std::string& over) {
  const auto given = settings.first_of({"mask"});
  for (const char* of_file : {"documents:", "blocks:", "pattern:"}) {
    if (given && given->text.find(of_file) != std::string::npos) {
      throw UsageError(fmt::format("{} '{}': a file has a mask of one n, and {} asks about several",
                                   given->from, given->text, over));
    }
  }
}

Curve curve_of(const CurveAsked& asked) {
  const Curve::Over over = over_of(asked.over);
  const std::optional<Words> words = words_of(asked);
  const std::optional<Rates> rates = rates_of(asked);
  TaskOptions::Sizes sizes;
  const auto task = [&](std::optional<Index> TaskOptions::Sizes::*size, Index value) {
    sizes.*size = value;
    Request request;
    Task its = asked.task.task_at(sizes, request);
    if (!request.inner.empty()) {
      throw UsageError(fmt::format("{}: a curve is of one level of fast memory: give one size",
                                   request.said("M")));
    }
    return its;
  };
  std::vector<Task> tasks;
  std::optional<Curve::Reached> reached;
  if (over == Curve::Over::M) {
    sizes.why = "words are against M: leave it out, or give --over n or --over d";
    Task of_any = task(&TaskOptions::Sizes::M, 1);
    if (words) {
      reached = least_M_for(of_any, *words);
    }
    const bool all_given = asked.from.get() && asked.to.get();
    for (const Index M :
         sizes_of(asked, all_given ? std::nullopt : std::optional(curve_memories(of_any)))) {
      of_any.memory = M;
      tasks.push_back(of_any);
    }
  } else {
    if (words) {
      throw UsageError(fmt::format("{}: it finds an M, and {} {} asks about one",
                                   asked.words.get() ? asked.words.flag() : asked.bytes.flag(),
                                   asked.over.flag(), asked.over.get()->text));
    }
    const bool is_n = over == Curve::Over::n;
    sizes.why = fmt::format("words are against {}: leave it out", to_string(over));
    if (is_n) {
      refuse_files(asked.task.settings(), fmt::format("{} {}", asked.over.flag(), to_string(over)));
    }
    for (const Index size : sizes_of(asked, std::nullopt)) {
      tasks.push_back(task(is_n ? &TaskOptions::Sizes::n : &TaskOptions::Sizes::d, size));
    }
  }
  Curve curve = report_curve(tasks, over, rates);
  curve.reached = std::move(reached);
  return curve;
}

}  // namespace

Action add_curve(CLI::App& app) {
  return tabled(app, curve_of, curve_picture);
}

}  // namespace redblue
