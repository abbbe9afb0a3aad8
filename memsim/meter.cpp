#include "memsim/meter.hpp"

#include <memory>

namespace redblue {

void Meter::enter(std::string_view name) {
  const auto known = std::ranges::find(phase_->children, name, &PhaseNode::name);
  if (known != phase_->children.end()) {
    phase_ = known->get();
  } else {
    auto node = std::make_unique<PhaseNode>();
    node->name = name;
    node->parent = phase_;
    phase_->children.push_back(std::move(node));
    phase_ = phase_->children.back().get();
  }
  raise_peaks();
}

void Meter::leave() noexcept {
  phase_ = phase_->parent;
  raise_peaks();
}

// What lives when a phase begins, or is innermost again, lives in it.
void Meter::raise_peaks() noexcept {
  phase_->peak = std::max(phase_->peak, live_);
  for (const Holds holds : kHolds) {
    phase_->kinds[holds].peak = std::max(phase_->kinds[holds].peak, live_of_[holds]);
  }
}

std::string Meter::refusal(std::string_view name, Index words, Index M,
                           const std::string& contents) const {
  const std::string phase = phase_->path();
  return "fast memory overflow in " + (phase.empty() ? "no phase" : "phase " + phase) + ": " +
         std::string(name) + " asks for " + std::to_string(words) + " words, but " +
         std::to_string(live_) + " of M = " + std::to_string(M) + " are live (" +
         (contents.empty() ? "none" : contents) + "): " + std::to_string(words - (M - live_)) +
         " words are missing";
}

}  // namespace redblue
