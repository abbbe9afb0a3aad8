#pragma once
// Tracks the path of the innermost open phase, for listeners that attribute figures to phases.

#include <string>
#include <vector>

#include "memsim/events.hpp"

namespace redblue {

class PhasePath {
 public:
  // "phase1/S"; empty outside all phases.
  [[nodiscard]] const std::string& path() const { return open_.back(); }
  // Returns whether the event changes the innermost phase. The listener then attributes its figures
  // to the old phase, and calls follow().
  static bool changes(const Event& event) {
    return event.kind == Event::Kind::enter_phase || event.kind == Event::Kind::leave_phase;
  }
  void follow(const Event& event) {
    if (event.kind == Event::Kind::enter_phase) {
      const std::string& outer = open_.back();
      open_.push_back(outer.empty() ? std::string(event.name)
                                    : outer + "/" + std::string(event.name));
    } else {
      open_.pop_back();
    }
  }

 private:
  std::vector<std::string> open_{""};  // outermost first
};

}  // namespace redblue
