#include "runtime/trace/phase_clock.hpp"

namespace redblue {

double PhaseClock::seconds(const std::string& path) const {
  check();
  const auto found = seconds_.find(path);
  return found == seconds_.end() ? 0 : found->second;
}

double PhaseClock::total() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void PhaseClock::follow(const Event& event) {
  if (PhasePath::changes(event)) {
    book();
    phase_.follow(event);
  }
}

void PhaseClock::book() {
  const Clock::time_point now = Clock::now();
  seconds_[phase_.path()] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

}  // namespace redblue
