#pragma once
// Checks that all arithmetic is on words in the innermost level of a machine.

#include <string>

#include "memsim/machine.hpp"

namespace redblue {

class NearArithmetic final : public Listener {
 public:
  // Listens during its lifetime, if the machine has inner levels.
  explicit NearArithmetic(Machine& machine) : machine_(machine) {
    if (!machine_.inner().empty()) {
      machine_.listen(*this, Hears::moves_and_arithmetic);
    }
  }
  ~NearArithmetic() override { machine_.silence(*this); }

  // Returns the first operation with a word outside the innermost level, or "" if no such operation
  // was heard.
  [[nodiscard]] const std::string& far() const { return far_; }

 private:
  void on(const Event& /* event */) noexcept override {}
  void on(const Operation& operation) noexcept override {
    const Level& innermost = machine_.inner().front();
    bool near = innermost.has(operation.result);
    for (const TilePart& operand : operation.operands) {
      near = near && innermost.has(operand);
    }
    if (!near && far_.empty()) {
      far_ = std::string(operation.name) + " in phase " + machine_.open_phase() + ", beside " +
             innermost.contents();
    }
  }

  Machine& machine_;
  std::string far_;
};

}  // namespace redblue
