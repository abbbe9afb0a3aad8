#pragma once
// Times kernels in fast memories of several sizes, and finds the fastest. All runs are on operands
// from a seed in main memory. Belongs to one thread.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/workers.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// A kernel in a share of a cache, with its fastest blocks.
struct Trial {
  CachePart part;
  Plan plan;
  Team team;
  double predicted = 0;  // seconds by the rates
  // The trial that makes O and L, if the kernel takes them.
  std::optional<std::size_t> forward = {};
  std::vector<double> seconds = {};  // one for each run; empty: left out

  [[nodiscard]] bool timed() const { return !seconds.empty(); }
  // Require: timed().
  [[nodiscard]] double least() const;
  [[nodiscard]] double middle() const;
};

class Tuning {
 public:
  static constexpr Index kRounds = 9;

  // Plans all trials: each kernel that fits, in shares of L1, L2 and L3. The M of the task is
  // ignored. The topology and the rates must outlive this object. Throws: FastMemoryTooSmall if no
  // kernel fits; std::runtime_error if no cache is known.
  Tuning(Task task, Index threads, const Topology& topology, const Rates& rates);

  // Called before each run with a line that names it. An exception ends the work.
  using Show = std::function<void(std::string_view line)>;
  // Times the trials in interleaved rounds. In the first round, a trial is left out if its estimate
  // is twice the time of the best one. Later rounds time the trials within 1.5 times the best one.
  // The work ends early, after a whole round, if `seconds` have passed.
  void run(double seconds, const Show& show);

  [[nodiscard]] const Task& task() const { return task_; }
  [[nodiscard]] Index threads() const { return threads_; }
  [[nodiscard]] Index rounds() const { return rounds_; }
  [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }
  // Returns the seconds of a trial, with the forward pass that it needs. Requires: it was timed.
  [[nodiscard]] double from_scratch(const Trial& trial) const;
  [[nodiscard]] const Trial* forward_of(const Trial& trial) const {
    return trial.forward ? &forwards_[*trial.forward] : nullptr;
  }
  // Returns the flops of a trial over its time, over the speed of multiply-adds on its workers.
  // Requires: it was timed.
  [[nodiscard]] double of_peak(const Trial& trial) const;
  // Returns the bytes of memory that the runs take.
  [[nodiscard]] Words bytes() const;

 private:
  void plan_in(const CachePart& part);
  std::optional<std::size_t> forward_in(const CachePart& part);
  void make_operands();
  void time(Trial& trial, const Show& show, std::string_view place);
  // Estimates of a trial by its fastest run, or by its prediction if it was not timed.
  [[nodiscard]] double estimate(const Trial& trial) const;
  [[nodiscard]] double estimate_from_scratch(const Trial& trial) const;
  // Returns whether a trial takes at most `factor` times as long as the best, either alone or from
  // scratch.
  [[nodiscard]] bool is_near(const Trial& trial, double factor) const;

  Task task_;
  Index threads_;
  const Topology& topology_;
  const Rates& rates_;
  std::vector<Trial> trials_, forwards_;
  Buffers operands_;
  Index rounds_ = 0;
  std::vector<double> peaks_;
};

}  // namespace redblue
