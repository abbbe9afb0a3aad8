// Tests text from outside, in the form that a person sees: no part of it is a command to a
// terminal, and its length is limited.

#include "runtime/text/printable.hpp"

#include <gtest/gtest.h>

#include "runtime/text/table.hpp"

namespace redblue {
namespace {

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string_view("a\0b\r\n\t\x7f", 7)), "a\\x00b\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "one letter that is ESC [";
  EXPECT_EQ(printable_lines("a\nb\x1b\n"), "a\nb\\x1b\n");
}

TEST(Printable, LeavesLettersAsTheyAre) {
  const std::string text = "a/b '\\' \u00a0 \u00e9 \u03b1 \u4e2d \U0001f600";
  EXPECT_EQ(printable(text), text);
  EXPECT_TRUE(is_utf8(text));
}

// Invalid UTF-8: cut letters, letters with more bytes than they need, surrogates, and values above
// U+10FFFF.
TEST(Printable, EscapesWhatIsNoLetter) {
  for (const std::string text :
       {"\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xe0\x80\x80",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(text));
    const std::string shown = printable("a" + text + "z");
    EXPECT_TRUE(shown.starts_with("a\\x") && shown.ends_with("z")) << shown;
    EXPECT_EQ(shown.size(), 2 + 4 * text.size()) << shown;
  }
}

TEST(Printable, ShortensBetweenLetters) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("0123456789abcdefghij", 15), "012345678...hij");
  EXPECT_EQ(shortened("\x1b[31m"), "\\x1b[31m");
  std::string text;
  for (int k = 0; k < 100; ++k) {
    text += "\u4e2d";
  }
  for (std::size_t most = 9; most < 40; ++most) {
    const std::string part = shortened(text, most);
    EXPECT_LE(part.size(), most);
    EXPECT_TRUE(is_utf8(part)) << part;
  }
}

// A line of the table stays one line, whatever a cell holds.
TEST(Table, ACellBreaksNoLine) {
  Table table;
  table.add({"phase", "words"});
  table.add({"a\nb\x1b[2J", "1"});
  EXPECT_EQ(table.text(), "phase          words\na\\x0ab\\x1b[2J      1\n");
}

}  // namespace
}  // namespace redblue
