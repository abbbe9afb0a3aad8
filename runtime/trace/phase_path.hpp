#pragma once
// The path of the innermost open phase, for listeners that assign something to phases.

#include <string>
#include <vector>

#include "memsim/events.hpp"

namespace redblue {

class PhasePath {
 public:
  // "phase1/S"; empty outside of all phases.
  [[nodiscard]] const std::string& path() const { return open_.back(); }
  // Whether the event changes the innermost phase. The listener then books its figures so far, and
  // calls follow().
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
