#include "memsim/meter.hpp"

#include <memory>
#include <string>

namespace redblue {

void Meter::enter(std::string_view name) {
  std::vector<std::unique_ptr<PhaseNode>>& inner = now().children;
  const auto known = std::ranges::find(inner, name, &PhaseNode::name);
  if (known != inner.end()) {
    set_phase(known->get());
  } else {
    auto node = std::make_unique<PhaseNode>();
    node->name = name;
    node->parent = &now();
    inner.push_back(std::move(node));
    set_phase(inner.back().get());
  }
  raise_peaks();
}

void Meter::leave() noexcept {
  set_phase(now().parent);
  raise_peaks();
}

// Words that are live when a phase begins or resumes count towards its peak.
void Meter::raise_peaks() noexcept {
  raise(now().peak, live_);
  for (const Holds holds : kHolds) {
    raise(now().kinds[holds].peak, live_of_[holds]);
  }
}

std::string Meter::refusal(std::string_view name, Index words, Index M,
                           const std::string& contents) const {
  const std::string phase = now().path();
  const auto counted = [](Index count) {
    return std::to_string(count) + (count == 1 ? " word" : " words");
  };
  const Index missing = words - (M - live_);
  return "fast memory overflow in " + (phase.empty() ? "no phase" : "phase " + phase) + ": " +
         std::string(name) + " asks for " + counted(words) + ", but " + std::to_string(live_) +
         " of M = " + std::to_string(M) + " are live (" + (contents.empty() ? "none" : contents) +
         "): " + counted(missing) + (missing == 1 ? " is missing" : " are missing");
}

}  // namespace redblue
