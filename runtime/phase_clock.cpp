#include "runtime/phase_clock.hpp"

namespace redblue {

PhaseClock::PhaseClock(Machine& machine) : machine_(machine) {
  machine_.listen(*this);
}

PhaseClock::~PhaseClock() {
  machine_.silence(*this);
}

double PhaseClock::seconds(const std::string& path) const {
  const auto found = seconds_.find(path);
  return found == seconds_.end() ? 0 : found->second;
}

double PhaseClock::total() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void PhaseClock::on(const Event& event) noexcept {
  if (event.kind == Event::Kind::enter_phase) {
    book();
    const std::string& outer = open_.back();
    open_.push_back(outer.empty() ? std::string(event.name)
                                  : outer + "/" + std::string(event.name));
  } else if (event.kind == Event::Kind::leave_phase) {
    book();
    open_.pop_back();
  }
}

void PhaseClock::book() {
  const Clock::time_point now = Clock::now();
  seconds_[open_.back()] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

}  // namespace redblue
