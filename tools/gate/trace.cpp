#include "tools/gate/trace.hpp"

#include <fmt/format.h>

#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "runtime/trace/chrome_trace.hpp"
#include "runtime/trace/dinero_trace.hpp"
#include "tools/cli/print.hpp"

namespace redblue {
namespace {

void note_where(const DineroTrace& trace, std::vector<std::string>& notes) {
  for (const auto& [name, rows, cols, weight, address] : trace.matrices()) {
    const std::string wide = weight > 1 ? fmt::format(", {} words an element", weight) : "";
    notes.push_back(fmt::format("{} ({} x {}{}) lies at 0x{:x}", name, rows, cols, wide, address));
  }
}

}  // namespace

TraceTarget::TraceTarget(const TextOption& file, const TextOption& limit, Index most)
    : limit_(limit), most_(most) {
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

void TraceTarget::note_cut(Index written, Index all, const char* what,
                           std::vector<std::string>& notes) const {
  if (written < all) {
    notes.push_back(fmt::format("{} is cut: it has the first {} of {} {} ({} {} for all)",
                                text_->target().string(), grouped(written), grouped(all), what,
                                limit_.flag(), all));
  }
}

TraceOptions::TraceOptions(CLI::App& app, const std::string& of)
    : out_(app, "-o,--out",
           fmt::format("write a trace of {} for Perfetto or chrome://tracing (-: standard output)",
                       of),
           "FILE"),
      din_(app, "--din",
           "write the moves in Dinero's format, for cache simulators (-: standard output)", "FILE"),
      events_(app, "--events", fmt::format("most events of --out (default: {})", kMostTraceEvents),
              "NUMBER"),
      din_words_(app, "--din-words",
                 fmt::format("most words of --din (default: {})", kMostDineroWords), "NUMBER") {}

std::vector<Given> TraceOptions::targets() const {
  std::vector<Given> targets = out_.all();
  const std::vector<Given> words = din_.all();
  targets.insert(targets.end(), words.begin(), words.end());
  return targets;
}

const TraceOptions& TraceFiles::checked(const TraceOptions& asked) {
  const auto out = asked.out_.get();
  const auto din = asked.din_.get();
  if (!out && !din) {
    throw UsageError("neither --out nor --din is given: name a file for the trace");
  }
  if (out && din && place_of(out->text) == place_of(din->text)) {
    throw UsageError(fmt::format("{} and {} name one file: {}", out->from, din->from, out->text));
  }
  return asked;
}

TraceFiles::TraceFiles(const TraceOptions& asked)
    : json_(checked(asked).out_, asked.events_, kMostTraceEvents),
      words_(asked.din_, asked.din_words_, kMostDineroWords) {}

void TraceFiles::follow(Machine& machine, const FollowedRun& run,
                        const std::function<void()>& work) {
  std::optional<ChromeTrace> chrome;
  std::optional<DineroTrace> dinero;
  if (json_.asked()) {
    chrome.emplace(machine, run, json_.text(), json_.most());
  }
  if (words_.asked()) {
    dinero.emplace(machine, words_.text(), words_.most());
  }
  work();
  if (chrome) {
    chrome->end();
    json_.note_cut(chrome->written(), chrome->all(), "events", notes_);
  }
  if (dinero) {
    dinero->check();
    words_.note_cut(dinero->written(), dinero->all(), "words", notes_);
    note_where(*dinero, notes_);
  }
}

void TraceFiles::commit() {
  json_.finish();
  words_.finish();
  json_.commit();
  words_.commit();
  for (const std::string& note : notes_) {
    say(note);
  }
}

}  // namespace redblue
