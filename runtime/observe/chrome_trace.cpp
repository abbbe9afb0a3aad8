// The format is "Trace Event Format" (Chromium). In chrome://tracing a counter has only the series
// that its first event names. A series that an event omits is 0 there, but unchanged in Perfetto.
// So every event names all series so far, and the first event, with an empty fast memory, is
// written last, into a space that is kept for it.

#include "runtime/observe/chrome_trace.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/text/json.hpp"

namespace redblue {
namespace {

constexpr std::string_view kBegin = "{\"traceEvents\":[\n";
constexpr std::size_t kSpace = 4096;
// Viewers that take slices in the order of the file cannot tell which of two that begin together is
// the outer one. So each level of phases has a track, and so have the moves.
constexpr Index kPhases = 1;
constexpr Index kMoves = 100;

std::string literal(std::string_view text) {
  return Json(text).dump();
}

}  // namespace

ChromeTrace::ChromeTrace(Machine& machine, const Plan& plan, TextFile& file, Index most)
    : Follower(machine), plan_(plan), file_(file), most_(most) {
  begin();
}

void ChromeTrace::begin() {
  file_.append(kBegin);
  file_.append(std::string(kSpace, ' '));
  written_ = all_ = 1;  // the event that will be in the space
  if (room()) {
    put(fmt::format(R"({{"name":"process_name","ph":"M","pid":1,"args":{{"name":{}}}}})",
                    literal(to_string(plan_))));
  }
}

void ChromeTrace::follow(const Event& event) {
  peak_ = std::max(peak_, event.live);
  switch (event.kind) {
    case Event::Kind::read:
      live(event, event.rows * event.cols);
      move(event, "read");
      io_.reads += event.block->words();
      break;
    case Event::Kind::write:
      move(event, "write");
      io_.writes += event.block->words();
      break;
    case Event::Kind::initialize:
      live(event, event.rows * event.cols);
      break;
    case Event::Kind::remove:
      live(event, -event.rows * event.cols);
      break;
    case Event::Kind::enter_phase:
      enter(event);
      break;
    case Event::Kind::leave_phase:
      leave(event);
      break;
  }
}

void ChromeTrace::enter(const Event& event) {
  if (level_ == levels_) {
    put_thread(kPhases + level_,
               level_ == 0 ? "phases" : fmt::format("phases, level {}", level_ + 1));
    ++levels_;
  }
  path_.follow(event);
  if (room()) {  // its slice is written when it ends; room() keeps a place for it
    open_.push_back({path_.path(), literal(event.name), level_, clock(), io_});
  }
  ++level_;
}

void ChromeTrace::leave(const Event& event) {
  path_.follow(event);
  --level_;
  if (!cut_) {
    put_phase(open_.back());
    open_.pop_back();
  }
}

void ChromeTrace::move(const Event& event, const char* kind) {
  if (!moved_) {
    put_thread(kMoves, "moves");
    moved_ = true;
  }
  if (!room()) {
    return;
  }
  const ConstBlock& block = *event.block;
  const Range rows = block.row_range();
  const Range cols = block.column_range();
  const Index words = block.words();
  const std::string matrix = literal(block.matrix().name());
  put(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":1,"tid":{},"args":{{)"
                  R"("name":{},"rows":{},"cols":{},"words":{},"block":{{)"
                  R"("matrix":{},"rows":[{},{}],"columns":[{},{}]}}}}}})",
                  literal(fmt::format("{} {}", kind, block.matrix().name())), kind, clock(), words,
                  kMoves, literal(event.name), event.rows, event.cols, words, matrix, rows.begin,
                  rows.end, cols.begin, cols.end));
}

void ChromeTrace::live(const Event& event, Index words) {
  if (!room()) {
    return;
  }
  auto series = std::ranges::find(series_, event.name, &Series::name);
  if (series == series_.end()) {
    series_.push_back({std::string(event.name), literal(event.name)});
    series = series_.end() - 1;
  }
  series->live += words;
  std::string all;
  for (const auto& [name, json, now] : series_) {
    fmt::format_to(std::back_inserter(all), "{}{}:{}", all.empty() ? "" : ",", json, now);
  }
  put(fmt::format(R"({{"name":"fast memory","ph":"C","ts":{},"pid":1,"args":{{{}}}}})", clock(),
                  all));
}

bool ChromeTrace::room() {
  ++all_;
  if (!cut_ && written_ + static_cast<Index>(open_.size()) >= most_) {
    cut_ = true;
    for (; !open_.empty(); open_.pop_back()) {
      put_phase(open_.back());
    }
  }
  return !cut_;
}

void ChromeTrace::put(const std::string& event) {
  file_.append(",\n");
  file_.append(event);
  ++written_;
}

void ChromeTrace::put_phase(const Open& phase) {
  const IoCount io = io_ - phase.before;
  put(fmt::format(R"({{"name":{},"cat":"phase","ph":"X","ts":{},"dur":{},"pid":1,"tid":{},)"
                  R"("args":{{"path":{},"reads":{},"writes":{}}}}})",
                  phase.json, phase.since, clock() - phase.since, kPhases + phase.level,
                  literal(phase.path), io.reads, io.writes));
}

void ChromeTrace::put_thread(Index thread, const std::string& name) {
  if (room()) {
    put(fmt::format(R"({{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":{}}}}})",
                    thread, literal(name)));
  }
}

std::string ChromeTrace::empty_memory() const {
  std::string event = R"({"name":"fast memory","ph":"C","ts":0,"pid":1,"args":{)";
  constexpr std::string_view kEnd = "}}";
  for (const Series& series : series_) {
    const std::string next =
        fmt::format("{}{}:0", &series == &series_.front() ? "" : ",", series.json);
    if (event.size() + next.size() + kEnd.size() > kSpace) {
      break;  // of hundreds of names, the first ones
    }
    event += next;
  }
  return event.append(kEnd);
}

std::string ChromeTrace::other_data() const {
  Json blocks = Json::object();
  for (const auto& [name, size] : plan_.blocks) {
    blocks[name] = size;
  }
  return Json{
      {"clock", "1 microsecond is 1 word moved"},
      {"kernel", spelled(plan_)},
      {"n", plan_.problem.shape.n},
      {"m", plan_.problem.shape.m},
      {"d", plan_.problem.shape.d},
      {"M", plan_.M},
      {"mask", plan_.problem.mask.spec().empty() ? "full" : plan_.problem.mask.spec()},
      {"blocks", blocks},
      {"total", {{"reads", io_.reads}, {"writes", io_.writes}, {"io", io_.io()}, {"peak", peak_}}},
      {"cut", cut_},
      {"events", written_},
      {"of", all_}}
      .dump();
}

void ChromeTrace::end() {
  check();
  file_.append(
      fmt::format("\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{}}}\n", other_data()));
  file_.replace(static_cast<std::int64_t>(kBegin.size()), empty_memory());
}

}  // namespace redblue
