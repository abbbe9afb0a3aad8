#pragma once
// A listener that follows one machine while it lives, and may fail: a machine's moves throw nothing
// of it, and the failure comes out when the run is over.

#include <exception>

#include "memsim/machine.hpp"

namespace redblue {

class Follower : public Listener {
 public:
  ~Follower() override { machine_.silence(*this); }

  // After a failure nothing more is followed.
  void on(const Event& event) noexcept final {
    try {
      if (failure_ == nullptr) {
        follow(event);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  // Throws: what following threw.
  void check() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 protected:
  explicit Follower(Machine& machine) : machine_(machine) { machine_.listen(*this); }

 private:
  virtual void follow(const Event& event) = 0;

  Machine& machine_;
  std::exception_ptr failure_;
};

}  // namespace redblue
