#pragma once
// The size of one attention problem: n queries, m keys, width d.

#include "memsim/words.hpp"

namespace redblue {

struct Shape {
  Index n = 1;
  Index m = 1;
  Index d = 1;

  friend bool operator==(const Shape&, const Shape&) = default;
};

}  // namespace redblue
