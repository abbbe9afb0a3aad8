// Tests the line numbers of a suite's entries: the lines of their opening brackets, whatever else
// the file has.

#include "runtime/gate/entry_lines.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {
namespace {

using LineNumbers = std::vector<std::size_t>;

TEST(EntryLines, AreThoseOfTheOpeningBrackets) {
  EXPECT_EQ(entry_lines("{\"points\": [\n  {\"n\": 1},\n\n  {\"n\":\n 2}, {}]}"),
            (LineNumbers{2, 4, 5}));
  EXPECT_EQ(entry_lines("{\"points\": []}"), LineNumbers());
  EXPECT_EQ(entry_lines("{}"), LineNumbers());
}

// Brackets, quotes and line ends in strings and comments are not entries. Neither are lists under
// other keys.
TEST(EntryLines, PassOverStringsCommentsAndOtherLists) {
  const std::string text = R"({
  "how": "points", "other": [{"points": [{}]}], // "points": [{
  /* {"points": [
     { */
  "points": [
    // {
    {"kernel": "a\"}{", "n": [1, {"from": 2}], "at_most": {"points": 1}},
    {"kernel": "b\\"}
  ],
  "more": [{}]
})";
  EXPECT_EQ(entry_lines(text), (LineNumbers{7, 8}));
}

// A text that is cut off or is not JSON gives some lines, without reading beyond its end.
TEST(EntryLines, OfAnyTextEnd) {
  const std::string text = "{\"points\": [\n{\"a\\\": 1}, /* */ // x\n{}]}";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    EXPECT_LE(entry_lines(text.substr(0, size)).size(), 2U);
  }
}

}  // namespace
}  // namespace redblue
