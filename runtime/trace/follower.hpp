#pragma once
// Base of listeners that follow one machine while they live, and may fail. A failure does not
// disturb the machine's moves; check() throws it after the run.

#include <exception>

#include "memsim/machine.hpp"

namespace redblue {

class Follower : public Listener {
 public:
  ~Follower() override { machine_.silence(*this); }

  // After a failure, further events are ignored.
  void on(const Event& event) noexcept final {
    attempt([&] { follow(event); });
  }
  void on(const Operation& operation) noexcept final {
    attempt([&] { follow(operation); });
  }
  // Throws the exception that follow() threw, if any.
  void check() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 protected:
  explicit Follower(Machine& machine, Hears hears = Hears::moves) : machine_(machine) {
    machine_.listen(*this, hears);
  }

  // Calls follow(), unless an earlier call has failed.
  template <class Follow>
  void attempt(const Follow& follow) noexcept {
    try {
      if (failure_ == nullptr) {
        follow();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

 private:
  virtual void follow(const Event& event) = 0;
  virtual void follow(const Operation& /* operation */) {}

  Machine& machine_;
  std::exception_ptr failure_;
};

}  // namespace redblue
