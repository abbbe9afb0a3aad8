#pragma once
// The seconds of each phase of a machine: the time during which the phase is the innermost one,
// over all its entries.
//
//   PhaseClock clock(machine);   // listens while it lives; the machine must outlive it

#include <chrono>
#include <map>
#include <string>

#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

class PhaseClock final : public Follower {
 public:
  explicit PhaseClock(Machine& machine) : Follower(machine) {}

  // By path; 0 for a phase that was not entered. Throws: std::bad_alloc, if a phase had no room.
  [[nodiscard]] double seconds(const std::string& path) const;
  // Since construction, in phases or not.
  [[nodiscard]] double total() const;

 private:
  using Clock = std::chrono::steady_clock;
  void follow(const Event& event) override;
  void book();

  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  PhasePath phase_;
  std::map<std::string, double> seconds_;
};

}  // namespace redblue
