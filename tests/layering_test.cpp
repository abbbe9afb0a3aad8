// The rooms depend on each other one way only, and some things do not belong in some rooms:
// a kernel that could allocate, read a clock or see the host's door to slow memory could move
// words that nobody counts. Checked on the text of the sources, by include lines and
// identifiers; comments and literals do not count.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using Strings = std::vector<std::string>;

struct Room {
  std::string name;
  Strings sees;                // rooms whose headers it may include
  bool standard_only;          // no <header> beyond the standard library's and `platform`
  Strings platform;            // what it may include of the platform
  Strings forbidden_headers;   // as they are written, with <> or without ""
  Strings forbidden_words;     // identifiers
  Strings forbidden_snippets;  // text without white space
};

const std::vector<Room>& rooms() {
  static const std::vector<Room> all = {
      {.name = "memsim",
       .sees = {"memsim"},
       .standard_only = true,
       // The second line is for the store on disk.
       .platform = {"<sys/mman.h>", "<unistd.h>",  //
                    "<fcntl.h>", "<liburing.h>", "<sys/file.h>", "<sys/stat.h>", "<sys/statvfs.h>",
                    "<xxhash.h>"},
       .forbidden_headers = {"<iostream>", "<chrono>"},
       .forbidden_words = {"getenv", "printf", "fprintf", "puts"},
       .forbidden_snippets = {}},
      {.name = "kernels",
       .sees = {"memsim", "kernels"},
       .standard_only = true,
       .platform = {"<hwy/foreach_target.h>", "<hwy/highway.h>", "<hwy/targets.h>"},
       .forbidden_headers = {"memsim/host_access.hpp", "<iostream>", "<fstream>", "<chrono>",
                             "<thread>", "<omp.h>", "<papi.h>"},
       .forbidden_words = {"getenv", "printf", "fprintf", "puts", "new", "malloc", "calloc",
                           "realloc", "aligned_alloc"},
       .forbidden_snippets = {"vector<float>", "make_unique<float", "make_shared<float"}},
      {.name = "runtime",
       .sees = {"memsim", "kernels", "runtime"},
       .standard_only = false,
       .platform = {},
       .forbidden_headers = {"<iostream>"},
       .forbidden_words = {"getenv", "printf", "fprintf", "puts"},
       .forbidden_snippets = {"fmt::print("}},
  };
  return all;
}

const Room& room(std::string_view name) {
  return *std::find_if(rooms().begin(), rooms().end(),
                       [&](const Room& r) { return r.name == name; });
}

bool contains(const Strings& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The text with comments and, when asked, the insides of literals blanked; lines stay lines.
std::string blanked(std::string_view text, bool literals_too) {
  enum class In { kCode, kLine, kBlock, kLiteral };
  In in = In::kCode;
  char quote = '"';
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    bool keep = c == '\n';
    switch (in) {
      case In::kCode:
        if (c == '/' && next == '/') {
          in = In::kLine;
        } else if (c == '/' && next == '*') {
          in = In::kBlock;
          result += ' ';
          ++i;
        } else {
          // A quote inside a number, as in 1'000, opens nothing.
          const bool separator = c == '\'' && i > 0 && is_word_character(text[i - 1]);
          if ((c == '"' || c == '\'') && !separator) {
            in = In::kLiteral;
            quote = c;
          }
          keep = true;
        }
        break;
      case In::kLine:
        if (c == '\n') {
          in = In::kCode;
        }
        break;
      case In::kBlock:
        if (c == '*' && next == '/') {
          in = In::kCode;
          result += ' ';
          ++i;
        }
        break;
      case In::kLiteral:
        keep = keep || !literals_too || c == quote;
        if (c == '\\') {
          result += keep ? c : ' ';
          ++i;
          result += keep ? next : ' ';
          continue;
        }
        if (c == quote || c == '\n') {
          in = In::kCode;
        }
        break;
    }
    result += keep ? c : ' ';
  }
  return result;
}

// What an #include line names: <vector>, or memsim/tile.hpp. Empty for any other line.
std::string included(const std::string& line) {
  std::string text;
  std::copy_if(line.begin(), line.end(), std::back_inserter(text),
               [](char c) { return c != ' ' && c != '\t'; });
  const std::string_view start = "#include";
  if (!text.starts_with(start) || text.size() < start.size() + 2) {
    return {};
  }
  text.erase(0, start.size());
  return text.front() == '"' ? text.substr(1, text.find('"', 1) - 1)
                             : text.substr(0, text.find('>') + 1);
}

// A name of the standard library has no dot and no slash.
bool is_standard(const std::string& header) {
  return header.find_first_of("./") == std::string::npos;
}

Strings identifiers(const std::string& code) {
  Strings result;
  for (std::size_t i = 0; i < code.size();) {
    std::size_t end = i;
    while (end < code.size() && is_word_character(code[end])) {
      ++end;
    }
    if (end > i) {
      result.push_back(code.substr(i, end - i));
    }
    i = end + 1;
  }
  return result;
}

// What this text, as a source of that room, does that the room must not do.
Strings violations(const Room& room, const std::string& text) {
  Strings result;

  std::istringstream lines(blanked(text, false));
  for (std::string line; std::getline(lines, line);) {
    const std::string header = included(line);
    if (header.empty()) {
      continue;
    }
    const bool angled = header.front() == '<';
    const bool allowed =
        angled ? !room.standard_only || is_standard(header) || contains(room.platform, header)
               : contains(room.sees, header.substr(0, header.find('/')));
    if (!allowed || contains(room.forbidden_headers, header)) {
      result.push_back("includes " + header);
    }
  }

  const std::string code = blanked(text, true);
  const Strings words = identifiers(code);
  for (const std::string& word : room.forbidden_words) {
    if (contains(words, word)) {
      result.push_back("uses " + word);
    }
  }
  std::string dense = code;
  std::erase_if(dense, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  for (const std::string& snippet : room.forbidden_snippets) {
    if (dense.find(snippet) != std::string::npos) {
      result.push_back("uses " + snippet);
    }
  }
  return result;
}

TEST(Layering, EveryRoomKeepsToItsOwn) {
  namespace fs = std::filesystem;
  for (const Room& room : rooms()) {
    int files = 0;
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(REDBLUE_SOURCE_DIR) / room.name)) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") {
        continue;
      }
      ++files;
      std::ifstream in(entry.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      for (const std::string& violation : violations(room, text)) {
        ADD_FAILURE() << entry.path().string() << ' ' << violation;
      }
    }
    EXPECT_GT(files, 0) << room.name << " has no sources: is the path right?";
  }
}

// What runtime/ uses of the machine and of other libraries stays in its sources: whoever includes
// its headers needs none of them installed.
TEST(Layering, HeadersOfRuntimeHideTheMachine) {
  namespace fs = std::filesystem;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(REDBLUE_SOURCE_DIR) / "runtime")) {
    if (entry.path().extension() != ".hpp") {
      continue;
    }
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::istringstream lines(blanked(text, false));
    for (std::string line; std::getline(lines, line);) {
      for (const char* hidden : {"<hwloc", "<papi", "<valgrind/", "<omp.h>"}) {
        EXPECT_FALSE(included(line).starts_with(hidden)) << entry.path().string() << ' ' << line;
      }
    }
  }
}

TEST(Layering, IncludesAreCaught) {
  const auto found = [](const char* in, const std::string& text) {
    return violations(room(in), text);
  };
  EXPECT_EQ(found("memsim", "#include \"kernels/shape.hpp\"\n"),
            Strings{"includes kernels/shape.hpp"});
  EXPECT_EQ(found("memsim", "#include \"tile.hpp\"\n"), Strings{"includes tile.hpp"});
  EXPECT_EQ(found("memsim", "#include <fmt/core.h>\n"), Strings{"includes <fmt/core.h>"});
  EXPECT_EQ(found("memsim", "#include <iostream>\n"), Strings{"includes <iostream>"});
  EXPECT_EQ(found("kernels", "#include \"memsim/host_access.hpp\"\n"),
            Strings{"includes memsim/host_access.hpp"});
  EXPECT_EQ(found("kernels", "  #  include   <chrono> // now\n"), Strings{"includes <chrono>"});
  EXPECT_EQ(found("kernels", "#include <omp.h>\n"), Strings{"includes <omp.h>"});
  EXPECT_EQ(found("kernels", "#include \"runtime/npy.hpp\"\n"),
            Strings{"includes runtime/npy.hpp"});
  EXPECT_EQ(found("runtime", "#include \"tools/sizes.hpp\"\n"),
            Strings{"includes tools/sizes.hpp"});
}

TEST(Layering, WordsAreCaught) {
  EXPECT_EQ(violations(room("kernels"), "float* p = new float[9];"), Strings{"uses new"});
  EXPECT_EQ(violations(room("kernels"), "auto p = std::malloc(9);"), Strings{"uses malloc"});
  EXPECT_EQ(violations(room("kernels"), "std::vector< float > v;"), Strings{"uses vector<float>"});
  EXPECT_EQ(violations(room("kernels"), "const char* e = getenv(\"M\");"), Strings{"uses getenv"});
  EXPECT_EQ(violations(room("memsim"), "std::printf(\"%d\", 1);"), Strings{"uses printf"});
  EXPECT_EQ(violations(room("runtime"), "fmt::print(\"{}\", 1);"), Strings{"uses fmt::print("});
  EXPECT_EQ(violations(room("kernels"), "char c = '\"'; int n = 1'000; f(new int); // \"'"),
            Strings{"uses new"});
}

TEST(Layering, WhatIsAllowedPasses) {
  EXPECT_EQ(violations(room("memsim"), "#include <vector>\n#include \"memsim/tile.hpp\"\n"),
            Strings{});
  EXPECT_EQ(violations(room("kernels"),
                       "// a new row\n/* malloc, getenv\n#include <chrono>\n*/\n"
                       "const char* what = \"new \\\" malloc\"; int renewed = 0;\n"),
            Strings{});
  EXPECT_EQ(violations(room("runtime"),
                       "#include <fmt/core.h>\n#include <fstream>\n"
                       "#include \"kernels/shape.hpp\"\nint snprintf_ = 0;"),
            Strings{});
}

}  // namespace
