#pragma once
// Bytes that a store moved, as a report itemises them.

#include <gtest/gtest.h>

#include "memsim/words.hpp"
#include "tests/support/json.hpp"

namespace redblue {

// moved = words + whole granules + padding + checksums + headers + repeated - at hand, for each
// purpose, read and written. Returns the bytes of them all.
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
