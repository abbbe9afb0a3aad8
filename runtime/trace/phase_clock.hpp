#pragma once
// Measures the seconds of each phase of a machine. A phase gets the time during which it is the
// innermost one, summed over all its entries.
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

  // Returns the seconds of the phase with this path, or 0 if it was not entered. Throws:
  // std::bad_alloc if memory for a phase ran out.
  [[nodiscard]] double seconds(const std::string& path) const;
  // Returns the seconds since construction, in phases or not.
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
