// The rooms depend on each other in one direction. Some things are banned from some rooms: a kernel
// that allocates, reads a clock or reaches slow memory through the host can move words without a
// count. The tests read the include lines and identifiers of the sources, but not comments and
// literals.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using Strings = std::vector<std::string>;

// Rules for all rooms of one part of the project.
struct Storey {
  bool standard_only;          // no <header> beyond the standard library's and `platform`
  Strings platform;            // what it may include of the platform
  Strings forbidden_headers;   // as they are written, with <> or without ""
  Strings forbidden_words;     // identifiers
  Strings forbidden_snippets;  // text without white space
};

const Strings kWriting = {"printf", "fprintf", "puts"};

// No room but environment.cpp reads or changes the environment of the process: an interpreter that
// calls redblue may change it at the same time.
const Strings kEnvironment = {"getenv",   "secure_getenv", "environ",  "setenv",
                              "unsetenv", "putenv",        "clearenv", "temp_directory_path"};
constexpr std::string_view kReadsTheEnvironment = "runtime/system/environment.cpp";

const Storey& memsim() {
  static const Storey storey{.standard_only = true,
                             .platform = {"<pthread.h>", "<sys/mman.h>", "<unistd.h>"},
                             .forbidden_headers = {"<iostream>", "<chrono>", "<thread>"},
                             .forbidden_words = kWriting,
                             .forbidden_snippets = {}};
  return storey;
}

const Storey& store() {
  static const Storey storey{
      .standard_only = true,
      .platform = {"<fcntl.h>", "<liburing.h>", "<sys/file.h>", "<sys/mman.h>", "<sys/stat.h>",
                   "<sys/statvfs.h>", "<unistd.h>", "<xxhash.h>"},
      .forbidden_headers = {"<iostream>", "<chrono>"},
      .forbidden_words = kWriting,
      .forbidden_snippets = {}};
  return storey;
}

const Storey& ranks() {
  static const Storey storey{.standard_only = true,
                             .platform = {"<xxhash.h>"},
                             .forbidden_headers = {"<iostream>"},
                             .forbidden_words = kWriting,
                             .forbidden_snippets = {}};
  return storey;
}

const Storey& kernels() {
  static const Storey storey{
      .standard_only = true,
      .platform = {"<hwy/foreach_target.h>", "<hwy/highway.h>", "<hwy/targets.h>"},
      .forbidden_headers = {"memsim/host_access.hpp", "<iostream>", "<fstream>", "<chrono>",
                            "<thread>", "<omp.h>", "<papi.h>"},
      .forbidden_words = {"printf", "fprintf", "puts", "new", "malloc", "calloc", "realloc",
                          "aligned_alloc"},
      .forbidden_snippets = {"vector<float>", "make_unique<float", "make_shared<float"}};
  return storey;
}

const Storey& runtime() {
  static const Storey storey{.standard_only = false,
                             .platform = {},
                             .forbidden_headers = {"<iostream>"},
                             .forbidden_words = kWriting,
                             .forbidden_snippets = {"fmt::print("}};
  return storey;
}

const Storey& tools() {
  static const Storey storey{.standard_only = false,
                             .platform = {},
                             .forbidden_headers = {"<iostream>"},
                             .forbidden_words = {"printf", "puts"},
                             .forbidden_snippets = {}};
  return storey;
}

struct Room {
  std::string name;  // a directory; or a file that has more rights than its directory
  const Storey* storey;
  Strings sees;  // rooms whose headers it may include, beside its own
};

// From the ground up: a room sees rooms above it in this list alone.
const std::vector<Room>& rooms() {
  static const std::vector<Room> all = [] {
    const Strings kernel = {"memsim", "kernels", "kernels/arithmetic", "kernels/parts"};
    const Strings ground = {"memsim", "memsim/store", "kernels", "kernels/arithmetic",
                            "runtime/system"};
    const auto with = [](Strings sees, const Strings& more) {
      sees.insert(sees.end(), more.begin(), more.end());
      return sees;
    };
    const Strings gate = with(ground, {"runtime/text"});
    const Strings run = with(gate, {"kernels/nests", "memsim/store", "kernels/arithmetic",
                                    "runtime/theory", "runtime/observe", "runtime/trace",
                                    "runtime/patterns", "memsim/ranks", "runtime/ranks"});
    const Strings report = with(run, {"runtime/run", "runtime/replay"});
    const Strings subjects = with(report, {"runtime/gate", "runtime/report", "runtime/sweep"});
    const Strings command =
        with(subjects, {"runtime/subjects", "runtime/pebble", "tools/cli", "tools/gate"});
    return std::vector<Room>{
        {"memsim", &memsim(), {}},
        {"memsim/store", &store(), {"memsim"}},
        {"memsim/ranks", &ranks(), {"memsim"}},
        {"kernels", &kernels(), {"memsim"}},
        {"kernels/arithmetic", &kernels(), {"memsim", "kernels"}},
        {"kernels/parts", &kernels(), {"memsim", "kernels", "kernels/arithmetic"}},
        {"kernels/matmul", &kernels(), kernel},
        {"kernels/forward", &kernels(), kernel},
        {"kernels/backward", &kernels(), kernel},
        {"kernels/gradients", &kernels(), kernel},
        {"kernels/layer", &kernels(), kernel},
        {"kernels/linear", &kernels(), kernel},
        {"kernels/sparse", &kernels(), kernel},
        {"kernels/nests", &kernels(), {"memsim", "kernels"}},
        {"runtime/system", &runtime(), {"memsim", "memsim/store"}},
        {std::string(kReadsTheEnvironment), &runtime(), {"runtime/system"}},
        {"runtime/theory",
         &runtime(),
         {"memsim", "kernels", "kernels/arithmetic", "kernels/nests"}},
        {"runtime/text", &runtime(), {"memsim", "runtime/system"}},
        {"runtime/trace", &runtime(), gate},
        {"runtime/replay", &runtime(), with(gate, {"runtime/trace"})},
        {"runtime/patterns", &runtime(), gate},
        {"runtime/observe", &runtime(), with(gate, {"memsim/ranks", "runtime/trace"})},
        {"runtime/pebble", &runtime(),
         with(gate, {"runtime/theory", "runtime/patterns", "runtime/trace"})},
        {"runtime/ranks", &runtime(),
         with(gate, {"memsim/ranks", "runtime/observe", "runtime/trace"})},
        {"runtime/run", &runtime(), run},
        {"runtime/gate", &runtime(), gate},
        {"runtime/sweep", &runtime(), with(gate, {"runtime/gate"})},
        {"runtime/report", &runtime(), report},
        {"runtime/subjects", &runtime(), subjects},
        {"tools/cli", &tools(), gate},
        {"tools/gate", &tools(),
         with(gate, {"kernels/nests", "runtime/trace", "runtime/replay", "runtime/gate",
                     "runtime/sweep", "tools/cli"})},
        {"tools/options", &tools(), command},
        {"tools/commands", &tools(), with(command, {"tools/options"})},
        {"runtime/mpi", &runtime(), {"memsim", "memsim/ranks"}},
        {"tools/explorer", &tools(), {"runtime/observe", "tools/cli", "tools/gate"}},
        {"tools/no_timer.cpp", &tools(), {}},
        {"tools/redblue.cpp",
         &tools(),
         {"memsim", "memsim/ranks", "runtime/system", "tools/cli", "tools/commands"}},
        {"tools/python", &tools(), with(command, {"tools/options", "tools/commands"})},
        {"tools/redblue_mpi.cpp",
         &tools(),
         {"memsim", "memsim/ranks", "runtime/mpi", "tools/cli", "tools/commands"}}};
  }();
  return all;
}

bool is_in(std::string_view path, std::string_view room) {
  return path.starts_with(room) && (path.size() == room.size() || path[room.size()] == '/');
}

// The room of a file: its directory, or the entry that names the file itself. None: null.
const Room* room_of(std::string_view path) {
  const Room* found = nullptr;
  for (const Room& room : rooms()) {
    const bool own = room.name.ends_with(".cpp") || path.rfind('/') == room.name.size();
    if (is_in(path, room.name) && own) {
      found = &room;
    }
  }
  return found;
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
          // A quote inside a number, as in 1'000, does not open a literal.
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

// Returns the file of an #include line: <vector>, or memsim/tile.hpp. Empty for any other line.
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

bool has_default_case(const std::string& code) {
  constexpr std::string_view kWord = "default";
  for (std::size_t at = 0; (at = code.find(kWord, at)) != std::string::npos;) {
    const bool begins = at == 0 || !is_word_character(code[at - 1]);
    at = code.find_first_not_of(" \t\n", at + kWord.size());
    if (begins && at != std::string::npos && code[at] == ':') {
      return true;
    }
  }
  return false;
}

// Returns the rules of the room that this text, as one of its sources, breaks.
Strings violations(const Room& room, const std::string& text) {
  Strings result;
  const Storey& storey = *room.storey;

  std::istringstream lines(blanked(text, false));
  for (std::string line; std::getline(lines, line);) {
    const std::string header = included(line);
    if (header.empty()) {
      continue;
    }
    const bool angled = header.front() == '<';
    const Room* from = angled ? nullptr : room_of(header);
    const bool allowed =
        angled ? !storey.standard_only || is_standard(header) || contains(storey.platform, header)
               : from != nullptr && (from->name == room.name || contains(room.sees, from->name));
    if (!allowed || contains(storey.forbidden_headers, header)) {
      result.push_back("includes " + header);
    }
  }

  const std::string code = blanked(text, true);
  const Strings words = identifiers(code);
  for (const std::string& word : kEnvironment) {
    if (room.name != kReadsTheEnvironment && contains(words, word)) {
      result.push_back("uses " + word);
    }
  }
  // Without it the compiler names an enumerator that a switch forgot.
  if (has_default_case(code)) {
    result.push_back("has a default in a switch");
  }
  for (const std::string& word : storey.forbidden_words) {
    if (contains(words, word)) {
      result.push_back("uses " + word);
    }
  }
  std::string dense = code;
  std::erase_if(dense, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  for (const std::string& snippet : storey.forbidden_snippets) {
    if (dense.find(snippet) != std::string::npos) {
      result.push_back("uses " + snippet);
    }
  }
  return result;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Layering, EveryRoomKeepsToItsOwn) {
  namespace fs = std::filesystem;
  const fs::path root = REDBLUE_SOURCE_DIR;
  std::map<std::string, int> files;
  for (const char* part : {"memsim", "kernels", "runtime", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") {
        continue;
      }
      const std::string path = fs::relative(entry.path(), root).string();
      const Room* room = room_of(path);
      if (room == nullptr) {
        ADD_FAILURE() << path << " is in no room";
        continue;
      }
      ++files[room->name];
      for (const std::string& violation : violations(*room, read(entry.path()))) {
        ADD_FAILURE() << path << ' ' << violation;
      }
    }
  }
  for (const Room& room : rooms()) {
    EXPECT_GT(files[room.name], 0) << room.name << " has no sources: is the path right?";
  }
}

// The list is an order: no two rooms see each other, not even by way of others.
TEST(Layering, RoomsSeeRoomsBelow) {
  Strings below;
  for (const Room& room : rooms()) {
    std::string seen;
    for (const std::string& other : room.sees) {
      EXPECT_TRUE(contains(below, other)) << room.name << " sees " << other;
      seen += ' ' + other;
    }
    std::cout << room.name << ":" << seen << '\n';
    below.push_back(room.name);
  }
}

// Only the sources of runtime/ use the machine and other libraries. A program can include its
// headers without these libraries.
TEST(Layering, HeadersOfRuntimeHideTheMachine) {
  namespace fs = std::filesystem;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(REDBLUE_SOURCE_DIR) / "runtime")) {
    if (entry.path().extension() != ".hpp") {
      continue;
    }
    std::istringstream lines(blanked(read(entry.path()), false));
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
  EXPECT_EQ(found("memsim", "#include \"kernels/problem.hpp\"\n"),
            Strings{"includes kernels/problem.hpp"});
  EXPECT_EQ(found("memsim", "#include \"tile.hpp\"\n"), Strings{"includes tile.hpp"});
  EXPECT_EQ(found("memsim", "#include <fmt/core.h>\n"), Strings{"includes <fmt/core.h>"});
  EXPECT_EQ(found("memsim", "#include <iostream>\n"), Strings{"includes <iostream>"});
  EXPECT_EQ(found("kernels", "#include \"memsim/host_access.hpp\"\n"),
            Strings{"includes memsim/host_access.hpp"});
  EXPECT_EQ(found("kernels", "  #  include   <chrono> // now\n"), Strings{"includes <chrono>"});
  EXPECT_EQ(found("kernels", "#include <omp.h>\n"), Strings{"includes <omp.h>"});
  EXPECT_EQ(found("kernels", "#include \"runtime/system/npy.hpp\"\n"),
            Strings{"includes runtime/system/npy.hpp"});
  EXPECT_EQ(found("runtime/report", "#include \"tools/cli/sizes.hpp\"\n"),
            Strings{"includes tools/cli/sizes.hpp"});
}

TEST(Layering, WordsAreCaught) {
  EXPECT_EQ(violations(room("kernels"), "float* p = new float[9];"), Strings{"uses new"});
  EXPECT_EQ(violations(room("kernels"), "auto p = std::malloc(9);"), Strings{"uses malloc"});
  EXPECT_EQ(violations(room("kernels"), "std::vector< float > v;"), Strings{"uses vector<float>"});
  EXPECT_EQ(violations(room("kernels"), "const char* e = getenv(\"M\");"), Strings{"uses getenv"});
  EXPECT_EQ(violations(room("tools/cli"), "setenv(\"A\", \"B\", 1);"), Strings{"uses setenv"});
  EXPECT_EQ(violations(room("runtime/system"), "char** all = environ;"), Strings{"uses environ"});
  EXPECT_EQ(violations(room("runtime/run"), "switch (a) { default : break; }"),
            Strings{"has a default in a switch"});
  EXPECT_EQ(violations(room("memsim"), "std::printf(\"%d\", 1);"), Strings{"uses printf"});
  EXPECT_EQ(violations(room("runtime/observe"), "fmt::print(\"{}\", 1);"),
            Strings{"uses fmt::print("});
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
  EXPECT_EQ(violations(room(kReadsTheEnvironment), "return getenv(name);"), Strings{});
  EXPECT_EQ(violations(room("kernels"), "Tile() = default; int a = b ? is_default : c;"),
            Strings{});
  EXPECT_EQ(violations(room("runtime/observe"),
                       "#include <fmt/core.h>\n#include <fstream>\n"
                       "#include \"kernels/problem.hpp\"\nint snprintf_ = 0;"),
            Strings{});
}

}  // namespace
