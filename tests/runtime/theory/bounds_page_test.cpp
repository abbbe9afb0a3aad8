// Tests the page of proofs, docs/theory/bounds.md: each letter has one meaning, each lemma one
// place, and the paper's theorem is quoted with both terms.

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

const std::filesystem::path kRoot = REDBLUE_SOURCE_DIR;

std::vector<std::string> split(const std::string& text, const std::regex& at) {
  return {std::sregex_token_iterator(text.begin(), text.end(), at, -1), {}};
}

// The letters in the first column of the table "Letters", and the rest of the page without code
// spans, link targets and commands.
struct Page {
  std::vector<std::string> letters;
  std::string rest;
};
Page page_of_bounds() {
  Page page;
  std::istringstream lines(content_of(kRoot / "docs/theory/bounds.md"));
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      in_table = line == "## Letters";
    }
    if (in_table && line.starts_with("| ") && !line.starts_with("| letter |")) {
      const std::string first = split(line, std::regex(R"(\s*\|\s*)")).at(1);
      for (const std::string& letter : split(first, std::regex(", "))) {
        page.letters.push_back(letter);
      }
    } else if (line.find("redblue ") == std::string::npos && !line.starts_with("  --n")) {
      page.rest += std::regex_replace(line, std::regex(R"(`[^`]*`|\]\([^)]*\))"), " ") + "\n";
    }
  }
  return page;
}

// Returns a letter without indices: s for s_ij, W' for W'_kj.
std::string base_of(const std::string& symbol) {
  return symbol.substr(0, symbol.find('_'));
}

// Returns the symbols that formulas use: single letters, names of Greek letters, and counts such as
// a1. The articles "a" and "A" look like letters, too. A numeral before a letter is a factor.
std::set<std::string> symbols_in(const std::string& text) {
  const std::regex symbol(
      "[a-zA-Z]'*|[a-z][A-Z0-9]|alpha|beta|gamma|delta|epsilon|eta|theta|kappa|[lL]ambda|mu|nu|pi|"
      "rho|sigma|tau|phi|chi|[pP]si|omega");
  std::set<std::string> found;
  for (const std::string& word : split(text, std::regex(R"([^A-Za-z0-9_']+)"))) {
    const std::string base =
        base_of(word.substr(std::min(word.find_first_not_of("0123456789"), word.size())));
    if (std::regex_match(base, symbol) && base != "a" && base != "A") {
      found.insert(base);
    }
  }
  return found;
}

TEST(BoundsPage, EachLetterHasOneMeaning) {
  const Page page = page_of_bounds();
  EXPECT_GT(page.letters.size(), 90U);
  std::set<std::string> all, bases;
  for (const std::string& letter : page.letters) {
    EXPECT_TRUE(all.insert(letter).second) << letter << " is in the table twice";
    bases.insert(base_of(letter));
  }
  for (const std::string& used : symbols_in(page.rest)) {
    EXPECT_TRUE(bases.contains(used)) << used << " is used and not in the table";
  }
  const auto words = split(page.rest, std::regex(R"([^A-Za-z0-9_']+)"));
  const std::set<std::string> in_text(words.begin(), words.end());
  std::set<std::string> used = in_text;
  for (const std::string& word : in_text) {
    used.insert(base_of(word.substr(std::min(word.find_first_not_of("0123456789"), word.size()))));
  }
  for (const std::string& letter : page.letters) {
    const bool level = letter == "M_k";  // stands for M_1, M_2 as well
    EXPECT_TRUE(used.contains(letter) || level) << letter << " is in the table and not used";
  }
}

// Each numbered lemma is stated once, on this page or on the page of ranks. Every reference names a
// stated lemma.
TEST(BoundsPage, LemmasAreNumberedOnce) {
  std::map<int, int> stated;
  for (const char* page : {"docs/theory/bounds.md", "docs/theory/ranks.md"}) {
    const std::string text = content_of(kRoot / page);
    const std::regex statement(R"(\*\*Lemma ([0-9]+) \()");
    for (std::sregex_iterator at(text.begin(), text.end(), statement), end; at != end; ++at) {
      ++stated[std::stoi((*at)[1])];
    }
  }
  ASSERT_GE(stated.size(), 13U);
  int number = 0;
  for (const auto& [lemma, times] : stated) {
    EXPECT_EQ(lemma, ++number);
    EXPECT_EQ(times, 1) << "Lemma " << lemma;
  }
  const std::regex named(R"(Lemmas? ([0-9]+)\b(?: and ([0-9]+)\b)?)");
  int names = 0;
  for (const char* room : {"docs", "runtime", "tests/runtime/theory"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / room)) {
      const auto kind = entry.path().extension();
      if (kind != ".md" && kind != ".hpp" && kind != ".cpp") {
        continue;
      }
      const std::string text = content_of(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at) {
        for (const std::size_t group : {1, 2}) {
          if ((*at)[group].matched) {
            EXPECT_TRUE(stated.contains(std::stoi((*at)[group])))
                << at->str() << " " << entry.path();
            ++names;
          }
        }
      }
    }
  }
  EXPECT_GT(names, 40);
}

// Theorem 4.5 as the paper prints it: a minimum of two terms, each of them a sum.
TEST(BoundsPage, QuotesTheoremFourFive) {
  const std::string page = content_of(kRoot / "docs/theory/bounds.md");
  EXPECT_NE(
      page.find("min{(Z_A^2 + Z_A Z_X) / M, (Z_A sqrt(Z_AXA) + sqrt(Z_A Z_X Z_AX)) / sqrt(M)}"),
      std::string::npos);
  EXPECT_EQ(page.find("Theorem 4.5** has sqrt(Z_S Z_A2 Z_QK)"), std::string::npos);
}

}  // namespace
}  // namespace redblue
