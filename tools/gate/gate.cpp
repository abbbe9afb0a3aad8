// The commands record, check and diff: record the words moved by kernels, and compare them with a
// later program.

#include "tools/gate/gate.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/gate/baseline.hpp"
#include "runtime/gate/comparison_report.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/shell_word.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/program.hpp"
#include "tools/gate/accept.hpp"
#include "tools/gate/jobs.hpp"
#include "tools/gate/own_nest.hpp"
#include "tools/gate/part.hpp"
#include "tools/gate/point_lines.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {
namespace {

constexpr int kDifferent = 3;

// Options for the outputs of a comparison: one format on standard output, others in files.
class FormOptions {
 public:
  explicit FormOptions(CLI::App& app)
      : format_(app, "--format", "output format (default: table)", list("|")),
        also_(app, "--also", "write another format to FILE, too (-: standard output)", "FORM=FILE",
              {}, true),
        tolerance_(app, "--tolerance",
                   "allow differences: reads=1%, reads=+1% (a rise), core:peak=64 (one phase); "
                   "comma-separated",
                   "[PHASE:]METRIC=SIZE") {}

  // Throws: UsageError.
  [[nodiscard]] std::vector<Tolerance> tolerances() const {
    std::vector<Tolerance> tolerances;
    for (const Given& given : tolerance_.items()) {
      try {
        tolerances.push_back(parse_tolerance(given.text));
      } catch (const std::invalid_argument& error) {
        throw UsageError(fmt::format("{} {}", given.from, error.what()));
      }
      const Tolerance& last = tolerances.back();
      const auto first = std::ranges::find_if(tolerances, [&](const Tolerance& each) {
        return each.phase == last.phase && each.metric == last.metric &&
               (each.side == last.side || each.side == Tolerance::Side::both ||
                last.side == Tolerance::Side::both);
      });
      if (&*first != &last) {
        throw UsageError(fmt::format("{} {}: {} says how far this may move: leave one of them out",
                                     given.from, given.text, first->text));
      }
    }
    return tolerances;
  }

  // The outputs, opened before the work. Throws: UsageError, std::system_error.
  class Outputs {
   public:
    // Writes all outputs. Returns the exit code.
    int take(const GateComparison& comparison, const std::vector<Tolerance>& tolerances) {
      for (const std::string& text : idle(tolerances, comparison)) {
        say(fmt::format(
            "{} {}: no point{} has this phase", tolerance_, text,
            comparison.part.is_whole() ? "" : " of part " + to_string(comparison.part)));
      }
      for (auto& [form, file] : files_) {
        file->append(form->text(comparison));
        file->finish();
      }
      if (caller() != nullptr) {
        const auto in_form = [&](std::string_view name) {
          return std::ranges::find(comparison_forms(), name, &ComparisonForm::name)
              ->text(comparison);
        };
        caller()->table = in_form("table");
        caller()->csv = in_form("csv");
      }
      print(form_->text(comparison), beside(data_on_standard_output_));
      for (auto& [form, file] : files_) {
        file->commit();
      }
      return comparison.failing() == 0 ? 0 : kDifferent;
    }

   private:
    friend class FormOptions;
    const ComparisonForm* form_ = nullptr;
    std::string tolerance_;  // the flag that gave tolerances
    bool data_on_standard_output_ = false;
    std::vector<std::pair<const ComparisonForm*, std::unique_ptr<WholeFile>>> files_;
  };
  // Opens the outputs. Throws: UsageError if an output is also in `read`.
  [[nodiscard]] Outputs outputs(const std::vector<std::string>& read) const {
    Outputs outputs;
    outputs.tolerance_ = tolerance_.flag();
    std::set<std::filesystem::path> targets;
    for (const std::string& path : read) {
      if (!is_standard_input(path)) {
        targets.insert(place_of(path));
      }
    }
    const auto format = format_.get();
    outputs.form_ = format ? &form_of(format->text, *format) : &comparison_forms().front();
    for (const Given& given : also_.all()) {
      const std::size_t equals = given.text.find('=');
      if (equals == std::string::npos || equals + 1 == given.text.size()) {
        throw UsageError(fmt::format("{} '{}': expected FORM=FILE, for example junit=gate.xml",
                                     given.from, given.text));
      }
      const ComparisonForm& form = form_of(given.text.substr(0, equals), given);
      const std::filesystem::path target = given.text.substr(equals + 1);
      if (!targets.insert(place_of(target)).second) {
        throw UsageError(fmt::format("{} '{}': this file is read, or another form goes there",
                                     given.from, given.text));
      }
      outputs.files_.emplace_back(&form, std::make_unique<WholeFile>(target));
      outputs.data_on_standard_output_ |= is_standard_output(target);
    }
    return outputs;
  }

 private:
  static std::string list(std::string_view between) {
    std::vector<std::string_view> names;
    for (const ComparisonForm& form : comparison_forms()) {
      names.push_back(form.name);
    }
    return fmt::format("{}", fmt::join(names, between));
  }
  static const ComparisonForm& form_of(const std::string& name, const Given& given) {
    const auto found = std::ranges::find(comparison_forms(), name, &ComparisonForm::name);
    if (found == comparison_forms().end()) {
      throw UsageError(
          fmt::format("{} '{}': expected one of {}", given.from, given.text, list(", ")));
    }
    return *found;
  }

  TextOption format_, also_, tolerance_;
};

How how_of(const std::string& text) {
  return text == to_string(How::run) ? How::run : How::count;
}

RecordedPoint record_point(const Subject& subject, const Arguments& arguments, How how,
                           const std::vector<Budget>& at_most = {}) {
  try {
    return record(subject, arguments, how, at_most);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: {}", to_string(Point{subject.name, arguments}), error.what()));
  }
}

// Throws: std::runtime_error if the kernel contradicts its formula, because a baseline must not
// hold such counts.
void check_formula(const Subject& subject, const Arguments& arguments,
                   const RecordedPoint& recorded) {
  if (!subject.formula || subject.compares_formula) {
    return;
  }
  std::vector<Difference> off =
      differences(record_point(subject, arguments, How::count), recorded, {});
  if (subject.peaks_are_bounds && subject.peaks_are_bounds(arguments)) {
    std::erase_if(off, [](const Difference& difference) {
      return difference.metric == "peak" && difference.after < difference.before;
    });
  }
  if (!off.empty()) {
    throw std::runtime_error(
        fmt::format("{}: from its formula to its run, {}: one of the two is "
                    "wrong",
                    to_string(recorded.point), to_words(off.front())));
  }
}

// Throws: std::runtime_error if the point is over a budget, because a baseline must keep its
// budgets.
void check_budgets(const RecordedPoint& recorded) {
  if (const std::vector<Difference> over = over_budget(recorded); !over.empty()) {
    throw std::runtime_error(fmt::format("{}: {}{}", to_string(recorded.point),
                                         to_words(over.front()), advice(over.front())));
  }
}

// Describes the part and the whole suite, so that merge can check that parts belong together.
RecordedPart recorded_part(const Suite& suite, const SuitePart& part) {
  SuiteOrigin origin{.how = suite.how, .program = program_fingerprint()};
  for (const SuitePoint& point : suite.points) {
    const Subject& subject = *point.subject;
    origin.points.push_back(to_string(Point{subject.name, brief(subject, point.arguments)}));
    if (!point.at_most.empty()) {
      origin.at_most[origin.points.back()] = to_string(point.at_most);
    }
    if (subject.fingerprints) {
      if (auto found = subject.fingerprints(point.arguments); !found.empty()) {
        origin.files[origin.points.back()] = std::move(found);
      }
    }
  }
  return {part, std::move(origin)};
}

// Records the points of the suite, or of `part`.
Recording record_suite(const Suite& suite, const std::optional<SuitePart>& part, unsigned jobs) {
  const std::vector<std::size_t> asked = points_of(part.value_or(SuitePart()), suite.points.size());
  Recording recording{.how = how_of(suite.how)};
  if (part) {
    recording.part = recorded_part(suite, *part);
  }
  recording.points.resize(asked.size());
  each_point(asked.size(), jobs, "recorded", [&](std::size_t k) {
    const SuitePoint& point = suite.points[asked[k]];
    RecordedPoint recorded =
        record_point(*point.subject, point.arguments, recording.how, point.at_most);
    recorded.accepted = point.accepted;
    if (recording.how == How::run) {
      check_formula(*point.subject, point.arguments, recorded);
    }
    recorded.point.arguments = brief(*point.subject, point.arguments);
    check_budgets(recorded);
    recording.points[k] = std::move(recorded);
  });
  return recording;
}

// Returns the complete arguments of a point from a recording in this directory. Throws:
// std::invalid_argument.
Arguments arguments_of(const Point& point, const Subject& subject,
                       const std::filesystem::path& directory) {
  Arguments arguments = point.arguments;
  arguments.set_directory(directory);
  return complete(subject, arguments);
}

Compared check_point(const RecordedPoint& before, const std::filesystem::path& directory, How how,
                     const std::vector<Subject>& subjects,
                     const std::vector<Tolerance>& tolerances) {
  Compared compared{.point = before.point, .before = before};
  Arguments arguments;
  try {
    const Subject* subject = nullptr;
    try {
      subject = &find_subject(subjects, before.point.subject, directory);
      arguments = arguments_of(before.point, *subject, directory);
    } catch (const NestMisfit&) {
      throw;
    } catch (const std::invalid_argument& error) {  // the kernel or an argument is gone
      compared.differences = {{.kind = Difference::Kind::gone, .why = error.what()}};
      return compared;
    }
    compared.now = record(*subject, arguments, how, before.at_most);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const NestMisfit&) {  // no point of this kernel can be checked
    throw;
  } catch (const std::exception& error) {  // other points still report their words
    compared.differences = {{.kind = Difference::Kind::failed, .why = error.what()}};
    return compared;
  }
  compared.now->point = before.point;
  compared.differences = over_budget(*compared.now);
  const std::vector<Difference> counted = differences(before, *compared.now, tolerances);
  compared.differences.insert(compared.differences.end(), counted.begin(), counted.end());
  return compared;
}

Action add_record(CLI::App& app, const std::function<std::vector<Subject>()>& subjects_of) {
  struct Options {
    explicit Options(CLI::App& command)
        : suite(command, "suite", "a suite, or a baseline to record again (-: standard input)"),
          out(command, "-o,--out", "file to write (default: standard output)", "FILE"),
          part(command),
          jobs(command) {}
    Argument suite;
    TextOption out;
    PartOption part;
    JobsOption jobs;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, subjects_of] {
    const auto out = options->out.get();
    const auto part = options->part.get();
    const unsigned jobs = options->jobs.get();
    const std::vector<Subject> subjects = subjects_of();
    const Suite suite =
        read_suite(options->suite.get(), subjects,
                   {std::string(to_string(How::run)), std::string(to_string(How::count))});
    std::ranges::for_each(suite.notes, say);
    std::optional<WholeFile> file;
    if (out) {
      refuse_over_suite(*out);
      // Opens the file before the work, so that an unwritable file fails early.
      file.emplace(out->text);
    }
    Recording recording = record_suite(suite, part, jobs);
    if (file) {
      const std::string lost = keep_accepted(out->text, recording);
      file->append(to_json(recording));
      file->finish();
      file->commit();
      if (!lost.empty()) {
        say(lost);
      }
    } else {
      print(to_json(recording));
    }
    const auto unfit = std::ranges::count(recording.points, false, &RecordedPoint::fits);
    const auto first = std::ranges::find(recording.points, false, &RecordedPoint::fits);
    say(fmt::format("{} recorded{}{}", counted(std::ssize(recording.points), "point"),
                    part ? fmt::format(", part {} of {}", to_string(*part),
                                       counted(std::ssize(suite.points), "point"))
                         : "",
                    unfit == 0 ? ""
                               : fmt::format("; {} of them {} not fit in M: {}{}", unfit,
                                             unfit == 1 ? "does" : "do", to_string(first->point),
                                             unfit == 1 ? "" : ", ...")));
    return 0;
  };
}

// Accepts the new counts of the chosen points into the baseline. Returns a line for each.
std::vector<std::string> accept_all(const std::map<std::size_t, Accept>& accepts,
                                    const Accepted& by, const std::filesystem::path& directory,
                                    const std::vector<Subject>& subjects,
                                    GateComparison& comparison, Recording& baseline) {
  std::vector<std::string> said;
  for (const auto& [k, chosen] : accepts) {
    Compared& compared = comparison.points[k];
    if (chosen.by_pattern && compared.differences.empty()) {
      continue;
    }
    if (baseline.how == How::run && compared.now) {
      const Point& point = baseline.points[k].point;
      const Subject& subject = find_subject(subjects, point.subject, directory);
      check_formula(subject, arguments_of(point, subject, directory), *compared.now);
    }
    said.push_back(accept(chosen.given, by, compared, baseline.points[k]));
  }
  return said;
}

struct CheckOptions {
  explicit CheckOptions(CLI::App& command)
      : baseline(command, "baseline", "a baseline (-: standard input)"),
        forms(command),
        accept(
            command, "--accept",
            "point whose new counts become the baseline, named as `check` prints it; * stands for "
            "any letters",
            "POINT", {}, true),
        reason(command, "--reason", "reason to accept, kept in the baseline", "TEXT"),
        who(command, "--who", "name of the person who accepts (default: git's user)", "NAME"),
        suite(command, "--suite", "file that github annotations refer to (default: the baseline)",
              "FILE"),
        part(command),
        jobs(command) {}
  Argument baseline;
  FormOptions forms;
  TextOption accept, reason, who, suite;
  PartOption part;
  JobsOption jobs;
};

Action add_check(CLI::App& app, const std::function<std::vector<Subject>()>& subjects_of) {
  const auto options = std::make_shared<CheckOptions>(app);
  return [options, &app, subjects_of] {
    const std::vector<Tolerance> tolerances = options->forms.tolerances();
    const SuitePart part = options->part.get().value_or(SuitePart());
    const unsigned jobs = options->jobs.get();
    const std::string path = options->baseline.get();
    std::vector<std::string> read = {path};
    if (const auto suite = options->suite.get()) {
      read.push_back(suite->text);
    }
    FormOptions::Outputs outputs = options->forms.outputs(read);
    const std::string name = input_name(path);
    const std::optional<Accepted> by =
        accepted_by(options->accept, options->reason, options->who, path);
    if (by && !part.is_whole()) {
      throw UsageError(options->accept.flag() + ": a baseline is whole: leave out --part");
    }
    const std::string text = read_text(path);
    Recording baseline = parse_recording(text, name);
    // Find points that cannot be accepted, and an unwritable file, before the work.
    const std::map<std::size_t, Accept> accepts = to_accept(options->accept.all(), baseline);
    std::optional<WholeFile> changed;
    if (by) {
      changed.emplace(path);
    }
    GateComparison comparison{
        .before = name, .now = "this program", .how = baseline.how, .part = part};
    const std::vector<std::size_t> asked = points_of(part, baseline.points.size());
    comparison.points.resize(asked.size());
    const std::vector<Subject> subjects = subjects_of();
    const std::vector<PointLines> lines =
        lines_of_check({path, text}, baseline, options->suite, subjects);
    each_point(asked.size(), jobs, "checked", [&](std::size_t k) {
      comparison.points[k] = check_point(baseline.points[asked[k]], directory_of(path),
                                         baseline.how, subjects, tolerances);
    });
    std::vector<std::string> said;
    if (by) {
      said = accept_all(accepts, *by, directory_of(path), subjects, comparison, baseline);
      if (said.empty()) {
        throw UsageError(options->accept.flag() +
                         ": nothing differs at these points: leave it out");
      }
      changed->append(to_json(baseline));
      changed->finish();
    }
    sort_by_change(comparison);
    add_lines(lines, comparison);
    if (!is_standard_input(path) && part.is_whole()) {
      comparison.accept_with =
          fmt::format("{} check {}", shell_word(program_name(app)), shell_word(path));
    }
    const int code = outputs.take(comparison, tolerances);
    if (by) {
      changed->commit();
      std::ranges::for_each(said, say);
    }
    return code;
  };
}

Action add_diff(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : before(command, "before", "a baseline (-: standard input)"),
          now(command, "now", "another baseline (-: standard input)"),
          forms(command) {}
    Argument before, now;
    FormOptions forms;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    const std::vector<Tolerance> tolerances = options->forms.tolerances();
    const std::string before = options->before.get();
    const std::string now = options->now.get();
    if (is_standard_input(before) && is_standard_input(now)) {
      throw UsageError("-: standard input is one recording: name a file for the other");
    }
    FormOptions::Outputs outputs = options->forms.outputs({before, now});
    std::vector<PointLines> lines;
    const auto read = [&](const std::string& path) {
      const std::string text = read_text(path);
      Recording recording = parse_recording(text, input_name(path));
      lines.push_back(lines_of_recording({path, text}, recording));
      return recording;
    };
    const Recording old = read(before);
    GateComparison comparison = compare(old, read(now), tolerances);
    comparison.before = input_name(before);
    comparison.now = input_name(now);
    add_lines(lines, comparison);
    return outputs.take(comparison, tolerances);
  };
}

}  // namespace

std::vector<Subcommand> gate_subcommands(const std::function<std::vector<Subject>()>& subjects) {
  return {{"record",
           "run the points of a suite (kernels and sizes), and write their words to a baseline",
           [subjects](CLI::App& app) { return add_record(app, subjects); }},
          {"check", "run the points of a baseline again, and compare; exit code 3 on a difference",
           [subjects](CLI::App& app) { return add_check(app, subjects); }},
          {"diff", "compare two baselines, the largest changes first", add_diff}};
}

}  // namespace redblue
