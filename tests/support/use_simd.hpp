#pragma once
// Uses an instruction set within a scope, and restores the previous one at its end.

#include <string>

#include "kernels/arithmetic/simd.hpp"

namespace redblue {

class UseSimd {
 public:
  UseSimd() = default;  // for later changes within the scope
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
