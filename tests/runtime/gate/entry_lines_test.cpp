// The lines of a suite's entries are those on which their brackets open, whatever else the file
// says.

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

// Brackets, quotes and line ends in strings and comments are no entries; nor are lists of other
// keys.
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

// What is cut off, or no JSON, gives some lines and does not read beyond the end.
TEST(EntryLines, OfAnyTextEnd) {
  const std::string text = "{\"points\": [\n{\"a\\\": 1}, /* */ // x\n{}]}";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    EXPECT_LE(entry_lines(text.substr(0, size)).size(), 2U);
  }
}

}  // namespace
}  // namespace redblue
