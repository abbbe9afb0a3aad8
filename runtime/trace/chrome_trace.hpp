#pragma once
// Writes the moves of one machine as a trace for chrome://tracing and Perfetto (ui.perfetto.dev).
// Phases, reads and writes are slices. The words in fast memory are a counter with a series for
// each tile name. Each inner level has the same tracks, for the parts of tiles in it.
//
// memsim has no clock: in a trace one microsecond is one word moved, at any level. So a trace is
// the same on every computer. A tile is in fast memory from the beginning of its read. Free
// operations take no time.
//
// Memory holds only names and open phases, however long the trace is. At the limit of events the
// trace is cut, and the open phases end there.

#include <deque>
#include <string>
#include <vector>

#include "runtime/system/text_file.hpp"
#include "runtime/trace/followed_run.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

inline constexpr Index kMostTraceEvents = 1'000'000;

class ChromeTrace final : public Follower {
 public:
  // Follows the machine while it lives. Requires: the machine has moved no words yet, the file is
  // empty, most >= 1.
  ChromeTrace(Machine& machine, FollowedRun run, TextFile& file, Index most = kMostTraceEvents);

  // Writes the rest of the text, with the totals. Throws: a failure of writing, now or earlier.
  void end();
  // The number of events in the file, and the number without a limit.
  [[nodiscard]] Index written() const { return written_; }
  [[nodiscard]] Index all() const { return all_; }

 private:
  // The words of fast memory under one tile name.
  struct Series {
    std::string name;
    std::string json;  // the name as a JSON literal
    Index live = 0;
  };
  // The fast memory of the machine or of an inner level.
  struct FastMemory {
    std::string name;   // the name of its counter
    std::string moves;  // the name of the track of moves
    Index track;
    Index M;
    IoCount io = {};
    Index peak = 0;
    std::vector<Series> series = {};
    bool moved = false;  // a move has been seen
  };
  // Follows an inner level.
  class Inner final : public Listener {
   public:
    Inner(ChromeTrace& trace, Level& level, std::size_t number)
        : trace_(trace), level_(level), number_(number) {
      level_.listen(*this);
    }
    ~Inner() override { level_.silence(*this); }
    void on(const Event& event) noexcept override {
      trace_.attempt([&] { trace_.follow_in(trace_.memories_[number_], event); });
    }

   private:
    ChromeTrace& trace_;
    Level& level_;
    std::size_t number_;  // from 1
  };
  struct Open {
    std::string path, json;
    Index level = 0;
    Index since = 0;
    IoCount before;
  };
  void begin();
  void follow(const Event& event) override;
  void follow_in(FastMemory& memory, const Event& event);
  void enter(const Event& event);
  void leave(const Event& event);
  void move(FastMemory& memory, const Event& event, const char* kind);
  void live(FastMemory& memory, const Event& event, Index words);
  // Returns whether one more event has room. If not, cuts the trace here.
  bool room();
  void put(const std::string& event);
  void put_phase(const Open& phase);
  void put_thread(Index thread, const std::string& name);
  [[nodiscard]] IoCount io() const { return memories_.front().io; }
  [[nodiscard]] std::string empty_memories() const;
  [[nodiscard]] std::string other_data() const;

  FollowedRun run_;
  TextFile& file_;
  Index most_;
  Index written_ = 0;
  Index all_ = 0;
  bool cut_ = false;
  Index clock_ = 0;  // words moved so far, at all levels
  PhasePath path_;
  std::vector<Open> open_;            // outermost first
  Index level_ = 0;                   // depth of the next phase
  Index levels_ = 0;                  // levels of phases with a track so far
  std::vector<FastMemory> memories_;  // the machine's, then the inner levels
  std::deque<Inner> inner_;
};

}  // namespace redblue
