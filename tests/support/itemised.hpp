#pragma once
// Checks how a report itemises the bytes that a store moved.

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/json.hpp"

namespace redblue {

// Expects moved = words + whole granules + padding + checksums + headers + repeated - `at_hand`,
// for each purpose and direction. Returns the sum of all bytes moved.
inline Index expect_itemised(const Json& store) {
  Index all = 0;
  for (const auto& [purpose, both] : store["bytes"].items()) {
    for (const char* direction : {"read", "written"}) {
      const Json& item = both[direction];
      Index sum = -item["at_hand"].get<Index>();
      for (const char* what :
           {"words", "whole_granules", "padding", "checksums", "headers", "repeated"}) {
        sum += item[what].get<Index>();
      }
      EXPECT_EQ(sum, item["moved"]) << purpose << " " << direction;
      all += sum;
    }
  }
  return all;
}

}  // namespace redblue
