// The format is "Trace Event Format" (Chromium). chrome://tracing shows only the series that a
// counter's first event names. There a series that an event omits is 0; in Perfetto it is
// unchanged. So every event names all series so far. The first event of each counter shows an empty
// fast memory. It is written last, into space that begin() reserves.

#include "runtime/trace/chrome_trace.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/text/json.hpp"

namespace redblue {
namespace {

constexpr std::string_view kBegin = "{\"traceEvents\":[\n";
constexpr std::size_t kSpace = 4096;
// Each level of phases has a track, and so have the moves. Viewers that take slices in file order
// cannot tell which of two slices with the same begin is the outer one.
constexpr Index kPhases = 1;
constexpr Index kMoves = 100;

std::string literal(std::string_view text) {
  return Json(text).dump();
}

}  // namespace

ChromeTrace::ChromeTrace(Machine& machine, FollowedRun run, TextFile& file, Index most)
    : Follower(machine), run_(std::move(run)), file_(file), most_(most) {
  memories_.push_back(
      {.name = "fast memory", .moves = "moves", .track = kMoves, .M = machine.capacity()});
  for (Level& level : machine.inner()) {
    const std::size_t number = memories_.size();
    memories_.push_back({.name = fmt::format("level {}", number),
                         .moves = fmt::format("moves, level {} (M = {})", number, level.capacity()),
                         .track = kMoves + static_cast<Index>(number),
                         .M = level.capacity()});
    inner_.emplace_back(*this, level, number);
  }
  begin();
}

void ChromeTrace::begin() {
  file_.append(kBegin);
  file_.append(std::string(kSpace * memories_.size(), ' '));
  written_ = all_ = static_cast<Index>(memories_.size());  // the first events of the counters
  if (room()) {
    put(fmt::format(R"({{"name":"process_name","ph":"M","pid":1,"args":{{"name":{}}}}})",
                    literal(run_.text)));
  }
}

void ChromeTrace::follow(const Event& event) {
  follow_in(memories_.front(), event);
}

void ChromeTrace::follow_in(FastMemory& memory, const Event& event) {
  memory.peak = std::max(memory.peak, event.live);
  switch (event.kind) {
    case Event::Kind::read:
      live(memory, event, event.words);
      move(memory, event, "read");
      memory.io.reads += event.moved;
      clock_ += event.moved;
      break;
    case Event::Kind::write:
      move(memory, event, "write");
      memory.io.writes += event.moved;
      clock_ += event.moved;
      break;
    case Event::Kind::initialize:
      live(memory, event, event.words);
      break;
    case Event::Kind::remove:
      live(memory, event, -event.words);
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
  if (room()) {  // leave() writes its slice; room() keeps a place for it
    open_.push_back({path_.path(), literal(event.name), level_, clock_, io()});
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

void ChromeTrace::move(FastMemory& memory, const Event& event, const char* kind) {
  if (!memory.moved) {
    put_thread(memory.track, memory.moves);
    memory.moved = true;
  }
  if (!room()) {
    return;
  }
  if (event.block == nullptr) {
    put(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":1,"tid":{},"args":{{)"
                    R"("name":{},"rows":{},"cols":{},"words":{}}}}})",
                    literal(fmt::format("{} {}", kind, event.name)), kind, clock_, event.moved,
                    memory.track, literal(event.name), event.rows, event.cols, event.moved));
    return;
  }
  const ConstBlock& block = *event.block;
  const Range rows = block.row_range();
  const Range cols = block.column_range();
  const std::string matrix = literal(block.matrix().name());
  put(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":1,"tid":{},"args":{{)"
                  R"("name":{},"rows":{},"cols":{},"words":{},"block":{{)"
                  R"("matrix":{},"rows":[{},{}],"columns":[{},{}]}}}}}})",
                  literal(fmt::format("{} {}", kind, block.matrix().name())), kind, clock_,
                  event.moved, memory.track, literal(event.name), event.rows, event.cols,
                  event.moved, matrix, rows.begin, rows.end, cols.begin, cols.end));
}

void ChromeTrace::live(FastMemory& memory, const Event& event, Index words) {
  if (!room()) {
    return;
  }
  auto series = std::ranges::find(memory.series, event.name, &Series::name);
  if (series == memory.series.end()) {
    memory.series.push_back({std::string(event.name), literal(event.name)});
    series = memory.series.end() - 1;
  }
  series->live += words;
  std::string all;
  for (const auto& [name, json, now] : memory.series) {
    fmt::format_to(std::back_inserter(all), "{}{}:{}", all.empty() ? "" : ",", json, now);
  }
  put(fmt::format(R"({{"name":"{}","ph":"C","ts":{},"pid":1,"args":{{{}}}}})", memory.name, clock_,
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
  const IoCount moved = io() - phase.before;
  put(fmt::format(R"({{"name":{},"cat":"phase","ph":"X","ts":{},"dur":{},"pid":1,"tid":{},)"
                  R"("args":{{"path":{},"reads":{},"writes":{}}}}})",
                  phase.json, phase.since, clock_ - phase.since, kPhases + phase.level,
                  literal(phase.path), moved.reads, moved.writes));
}

void ChromeTrace::put_thread(Index thread, const std::string& name) {
  if (room()) {
    put(fmt::format(R"({{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":{}}}}})",
                    thread, literal(name)));
  }
}

std::string ChromeTrace::empty_memories() const {
  constexpr std::string_view kEnd = "}}";
  std::string events;
  for (const FastMemory& memory : memories_) {
    std::string event = fmt::format(R"({}{{"name":"{}","ph":"C","ts":0,"pid":1,"args":{{)",
                                    events.empty() ? "" : ",\n", memory.name);
    for (const Series& series : memory.series) {
      const std::string next =
          fmt::format("{}{}:0", &series == &memory.series.front() ? "" : ",", series.json);
      if (event.size() + next.size() + kEnd.size() > kSpace) {
        break;  // of hundreds of names, only the first have space
      }
      event += next;
    }
    events += event.append(kEnd);
  }
  return events;
}

std::string ChromeTrace::other_data() const {
  const auto total_of = [](const FastMemory& memory) {
    return Json{{"reads", memory.io.reads},
                {"writes", memory.io.writes},
                {"io", memory.io.io()},
                {"peak", memory.peak}};
  };
  Json levels = Json::array();  // from the innermost out, the machine last
  for (std::size_t k = 1; k <= memories_.size(); ++k) {
    const FastMemory& memory = memories_[k % memories_.size()];
    levels.push_back({{"M", memory.M}, {"total", total_of(memory)}});
  }
  const bool several = memories_.size() > 1;
  Json data = {{"clock", several ? "1 microsecond is 1 word moved, at any level"
                                 : "1 microsecond is 1 word moved"}};
  data.update(followed_json(run_));
  data.update(run_.more);
  data.update(
      {{"total", total_of(memories_.front())}, {"cut", cut_}, {"events", written_}, {"of", all_}});
  if (several) {
    data["levels"] = std::move(levels);
  }
  return data.dump();
}

void ChromeTrace::end() {
  check();
  file_.append(
      fmt::format("\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{}}}\n", other_data()));
  file_.replace(static_cast<std::int64_t>(kBegin.size()), empty_memories());
}

}  // namespace redblue
