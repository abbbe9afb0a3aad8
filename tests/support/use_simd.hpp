#pragma once
// The instruction set in use within a scope, which restores the one before it.

#include <string>

#include "kernels/arithmetic/simd.hpp"

namespace redblue {

class UseSimd {
 public:
  UseSimd() = default;  // for changes within the scope
  explicit UseSimd(const std::string& target) : known_(use_simd_target(target)) {}
  UseSimd(const UseSimd&) = delete;
  UseSimd& operator=(const UseSimd&) = delete;
  ~UseSimd() { use_simd_target(before_); }

  [[nodiscard]] bool known() const { return known_; }

 private:
  std::string before_ = simd_target();
  bool known_ = true;
};

}  // namespace redblue
