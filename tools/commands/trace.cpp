// redblue trace: a run of a kernel, with its moves written down for other programs.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/trace/chrome_trace.hpp"
#include "runtime/trace/dinero_trace.hpp"
#include "runtime/report/followed_plan.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/text_file.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/sizes.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

// A file, if one is asked for, and the limit of its content.
class Target {
 public:
  Target(const TextOption& file, const TextOption& limit, Index most) : limit_(limit), most_(most) {
    const auto path = file.get();
    const auto given = limit.get();
    if (!path && given) {
      throw UsageError(fmt::format("{}: only with {}", given->from, file.flag()));
    }
    if (given) {
      most_ = parse_size(given->text, given->from);
    }
    if (path) {
      text_.emplace(path->text);
    }
  }

  [[nodiscard]] bool asked() const { return text_.has_value(); }
  TextFile& text() { return *text_; }
  [[nodiscard]] Index most() const { return most_; }
  // The note to print once the file is there.
  void note_cut(Index written, Index all, const char* what, std::vector<std::string>& notes) const {
    if (written < all) {
      notes.push_back(fmt::format("{} is cut: it has the first {} of {} {} ({} {} for all)",
                                  text_->target().string(), grouped(written), grouped(all), what,
                                  limit_.flag(), all));
    }
  }
  void finish() {
    if (asked()) {
      text_->finish();
    }
  }
  void commit() {
    if (asked()) {
      text_->commit();
    }
  }

 private:
  const TextOption& limit_;
  std::optional<TextFile> text_;
  Index most_;
};

void note_where(const DineroTrace& trace, std::vector<std::string>& notes) {
  for (const auto& [name, rows, cols, address] : trace.matrices()) {
    notes.push_back(fmt::format("{} ({} x {}) lies at 0x{:x}", name, rows, cols, address));
  }
}

}  // namespace

Action add_trace(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          inputs(command),
          out(command, "-o,--out",
              "a trace for Perfetto or chrome://tracing (JSON) of this kernel, without the forward "
              "pass that makes its O and L; a microsecond is a word moved; -: standard output",
              "FILE", Twin::of_command),
          din(command, "--din",
              "each word moved, for cache simulators: 0 or 1 and its address; -: standard output",
              "FILE", Twin::of_command),
          events(command, "--events", fmt::format("most events of --out; {}", kMostTraceEvents),
                 "NUMBER"),
          din_words(command, "--din-words",
                    fmt::format("most words of --din; {}", kMostDineroWords), "NUMBER") {}
    ProblemOptions problem;
    InputOptions inputs;
    TextOption out, din, events, din_words;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->problem.fill(request);
    options->inputs.fill(request);
    if (request.threads > 1) {
      throw UsageError(request.said("--threads") + ": a trace has one");
    }
    const auto out = options->out.get();
    const auto din = options->din.get();
    if (!out && !din) {
      throw UsageError("neither --out nor --din is given: name a file for the trace");
    }
    if (out && din && place_of(out->text) == place_of(din->text)) {
      throw UsageError(fmt::format("{} and {} name one file: {}", out->from, din->from, out->text));
    }
    // The files are opened before the work, so that one that cannot be written is known at once.
    Target json(options->out, options->events, kMostTraceEvents);
    Target words(options->din, options->din_words, kMostDineroWords);

    std::vector<std::string> notes;
    const RunHook traced = [&](Machine& machine, const Plan& plan, const auto& work) {
      std::optional<ChromeTrace> chrome;
      std::optional<DineroTrace> dinero;
      if (json.asked()) {
        chrome.emplace(machine, followed_of(plan), json.text(), json.most());
      }
      if (words.asked()) {
        dinero.emplace(machine, words.text(), words.most());
      }
      work();
      if (chrome) {
        chrome->end();
        json.note_cut(chrome->written(), chrome->all(), "events", notes);
      }
      if (dinero) {
        dinero->check();
        words.note_cut(dinero->written(), dinero->all(), "words", notes);
        note_where(*dinero, notes);
      }
    };
    run(request, Topology(), {.kernel = traced, .peak_gflops = false});
    json.finish();
    words.finish();
    json.commit();
    words.commit();
    for (const std::string& note : notes) {
      say(note);
    }
    return 0;
  };
}

}  // namespace redblue
