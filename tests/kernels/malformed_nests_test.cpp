// parse_nest() refuses each file of tests/kernels/malformed_nests.txt with one line that names the
// file, the line and the fault.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/nests/text_nest.hpp"

namespace redblue {
namespace {

struct MalformedNest {
  int in_table = 0;  // its line there
  std::string line, part, text;
};

// Returns a line of the table with its escapes replaced.
std::string unescaped(std::string_view text) {
  std::string found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      found += text[at];
      continue;
    }
    const char kind = text.at(++at);
    if (kind == 'x') {
      found += static_cast<char>(std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
      at += 2;
    } else if (kind == '{') {
      const std::size_t star = text.find('*', at), end = text.find('}', at);
      for (int k = std::stoi(std::string(text.substr(at + 1, star - at - 1))); k > 0; --k) {
        found += text.substr(star + 1, end - star - 1);
      }
      at = end;
    } else {
      found += kind == 't' ? '\t' : kind == 'r' ? '\r' : kind;
    }
  }
  return found;
}

std::vector<MalformedNest> malformed_nests() {
  std::ifstream in(std::string(REDBLUE_SOURCE_DIR) + "/tests/kernels/malformed_nests.txt");
  std::vector<MalformedNest> nests;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("=== ")) {
      const std::size_t space = line.find(' ', 4);
      nests.push_back({number, line.substr(4, space - 4), line.substr(space + 1), ""});
    } else if (line.starts_with("|")) {
      const std::size_t times = line.find(" times|");
      std::string text = unescaped(line.substr(times == std::string::npos ? 1 : times + 7)) + "\n";
      for (int k = times == std::string::npos ? 1 : std::stoi(line.substr(1)); k > 0; --k) {
        nests.back().text += text;
      }
    }
  }
  return nests;
}

TEST(MalformedNests, AreRefusedInOneLine) {
  const std::vector<MalformedNest> nests = malformed_nests();
  EXPECT_GE(nests.size(), 300U);
  for (const MalformedNest& nest : nests) {
    SCOPED_TRACE("tests/kernels/malformed_nests.txt:" + std::to_string(nest.in_table));
    try {
      parse_nest(nest.text, "bad.nest");
      ADD_FAILURE() << "taken, expected line " << nest.line << ": " << nest.part;
    } catch (const NestError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("bad.nest:" + nest.line + ": "))
          << text << "\nexpected line " << nest.line;
      EXPECT_NE(text.find(nest.part), std::string::npos) << text << "\nexpected " << nest.part;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127; })) << text;
      EXPECT_LT(text.size(), 600U) << text.substr(0, 600);
    }
  }
}

// A size may begin with `if(`, also after `when`.
TEST(MalformedNests, AreNoneWithAnIfInASize) {
  EXPECT_NO_THROW(
      parse_nest("kernel k\nmatrix Q[n,d] -> y[n]\nread Q[n,d]\n"
                 "when if(n < m, n, m) < 50\n  flops 1\nnew y[n]\nwrite y[n]\n",
                 "good.nest"));
}

}  // namespace
}  // namespace redblue
