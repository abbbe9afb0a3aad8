// Tests a user's kernels behind the command, in this process. The install test covers a project
// that links the library.

#include "tools/gate/own_kernel.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// Copies row by row, outside any phase.
void copy(Machine& machine, const Arguments& given) {
  SlowMatrix from("from", given["n"], given["m"]);
  SlowMatrix to("to", given["n"], given["m"]);
  for (Index i = 0; i < given["n"]; ++i) {
    const Tile row = machine.read(from.block({i, i + 1}, {0, given["m"]}));
    machine.write(row, to.block({i, i + 1}, {0, given["m"]}));
  }
}

void copy_in_a_phase(Machine& machine, const Arguments& given) {
  const Phase phase(machine, "copy");
  copy(machine, given);
}

std::vector<PhaseCost> words(const Arguments& given) {
  const Words all = Words(given["n"]) * given["m"];
  return {{"copy", all, all, given["m"], 0}};
}

std::vector<PhaseCost> a_word_more(const Arguments& given) {
  std::vector<PhaseCost> cost = words(given);
  cost[0].writes += 1;
  return cost;
}

REDBLUE_KERNEL("copy/rows", copy_in_a_phase, "n", "m").formula(words).summary("row by row");
REDBLUE_KERNEL("copy/wrong", copy_in_a_phase, "n", "m").formula(a_word_more);
REDBLUE_KERNEL("copy/plain", copy, "n", "m");

// Kernels that fail in different ways, for any size.
template <class Error>
void fails(Machine&, const Arguments&) {
  throw Error("with these words");
}
void takes_all_memory(Machine&, const Arguments&) {
  throw std::bad_alloc();
}

REDBLUE_KERNEL("fails/little", fails<FastMemoryTooSmall>, "n");
REDBLUE_KERNEL("fails/large", fails<CountOverflow>, "n");
REDBLUE_KERNEL("fails/shape", fails<ShapeMismatch>, "n");
REDBLUE_KERNEL("fails/memory", takes_all_memory, "n");

// Kernels that keep objects that must not outlive their machine.
struct Kept {
  Tile tile;
  std::unique_ptr<Phase> phase;
  std::unique_ptr<Stream> stream;
};
Kept& kept() {
  static Kept all;  // kept until the process ends, which must not crash
  return all;
}
void keeps_a_tile(Machine& machine, const Arguments&) {
  kept().tile = machine.initialize("sums", 2, 2);
}
void keeps_a_tile_and_fails(Machine& machine, const Arguments& given) {
  keeps_a_tile(machine, given);
  kept().tile(2, 0) = 1;
}
void keeps_a_phase(Machine& machine, const Arguments&) {
  kept().phase = std::make_unique<Phase>(machine, "endless");
}
void keeps_a_stream(Machine& machine, const Arguments&) {
  const SlowMatrix A("A", 3, 2);
  kept().stream.reset(new Stream(machine.stream(A.row_blocks(1), 2)));
  kept().stream->begin();
}

REDBLUE_KERNEL("keeps/tile", keeps_a_tile, "n");
REDBLUE_KERNEL("keeps/tile-and-fails", keeps_a_tile_and_fails, "n");
REDBLUE_KERNEL("keeps/phase", keeps_a_phase, "n");
REDBLUE_KERNEL("keeps/stream", keeps_a_stream, "n");

// Kernels with faults that end the process or throw a wrong type.
void crashes(Machine&, const Arguments&) {
  ::raise(SIGSEGV);
}
void aborts(Machine&, const Arguments&) {
  std::abort();
}
void ends_the_process(Machine&, const Arguments&) {
  std::_Exit(7);
}
void throws_a_number(Machine&, const Arguments&) {
  throw 42;  // NOLINT(hicpp-exception-baseclass)
}
std::vector<PhaseCost> crashing_formula(const Arguments&) {
  ::raise(SIGSEGV);
  return {};
}
void two_phases(Machine& machine, const Arguments& given) {
  const Phase phase(machine, "a\nb\x1b[2J");
  copy(machine, given);
}
void no_letters(Machine& machine, const Arguments& given) {
  const Phase phase(machine, "a\xff");
  copy(machine, given);
}

REDBLUE_KERNEL("fails/crash", crashes, "n");
REDBLUE_KERNEL("fails/abort", aborts, "n");
REDBLUE_KERNEL("fails/exit", ends_the_process, "n");
REDBLUE_KERNEL("fails/number", throws_a_number, "n");
REDBLUE_KERNEL("fails/formula", copy_in_a_phase, "n", "m").formula(crashing_formula);
REDBLUE_KERNEL("names/lines", two_phases, "n", "m");
REDBLUE_KERNEL("names/bytes", no_letters, "n", "m");

// B = A^T in blocks, as the nest tests/tools/nests/transpose.nest, and with one difference each.
std::string nest_file(const std::string& name) {
  return std::string(REDBLUE_SOURCE_DIR) + "/tests/tools/nests/" + name;
}
enum class Fault { none, reads_twice, holds_more, other_phase, outside, other_matrix };
template <Fault fault>
void transpose(Machine& machine, const Arguments& given) {
  const SlowMatrix A("A", given["n"], given["m"]);
  const SlowMatrix C("C", given["n"], given["m"]);
  SlowMatrix B("B", given["m"], given["n"]);
  if (fault == Fault::outside) {
    static_cast<void>(machine.read(A.block({0, 1}, {0, 1})));
  }
  const Phase phase(machine, fault == Fault::other_phase ? "turn" : "transpose");
  bool is_first = true;
  for (const Range I : blocks(A.rows(), given["side"])) {
    for (const Range J : blocks(A.cols(), given["side"])) {
      if (is_first && (fault == Fault::reads_twice || fault == Fault::other_matrix)) {
        static_cast<void>(machine.read((fault == Fault::reads_twice ? A : C).block(I, J)));
      }
      const Tile a = machine.read(A.block(I, J));
      const Tile b = machine.initialize("b", J.size(), I.size());
      if (fault == Fault::holds_more && is_first) {
        static_cast<void>(machine.initialize("more", 1, 5));
      }
      machine.write(b, B.block(J, I));
      is_first = false;
    }
  }
}
void transpose_rows(Machine& machine, const Arguments& given) {
  const SlowMatrix A("A", given["n"], given["m"]);
  SlowMatrix B("B", given["m"], given["n"]);
  for (const Range I : blocks(A.rows(), given["M"] / (2 * given["m"]))) {
    const Tile a = machine.read(A.block(I, {0, A.cols()}));
    const Tile b = machine.initialize("b", A.cols(), I.size());
    machine.write(b, B.block({0, A.cols()}, I));
  }
}
std::vector<PhaseCost> transposed_words(const Arguments& given) {
  const Words all = Words(given["n"]) * given["m"];
  const Index side = given["side"];
  return {{"transpose", all, all, 2 * std::min(given["n"], side) * std::min(given["m"], side), 0}};
}

#define REDBLUE_TRANSPOSE(name, fault) \
  REDBLUE_KERNEL(name, transpose<Fault::fault>, "n", "m", "side").nest(nest_file("transpose.nest"))
REDBLUE_TRANSPOSE("nest/same", none);
REDBLUE_TRANSPOSE("nest/and-formula", none).formula(transposed_words);
REDBLUE_TRANSPOSE("nest/and-false-formula", none).formula(words);
REDBLUE_TRANSPOSE("nest/reads-twice", reads_twice);
REDBLUE_TRANSPOSE("nest/holds-more", holds_more);
REDBLUE_TRANSPOSE("nest/other-phase", other_phase);
REDBLUE_TRANSPOSE("nest/outside", outside);
REDBLUE_TRANSPOSE("nest/other-matrix", other_matrix);
REDBLUE_KERNEL("nest/rows", transpose_rows, "n", "m").nest(nest_file("outside.nest"));
REDBLUE_KERNEL("nest/no-m", copy, "n", "side").nest(nest_file("transpose.nest"));
REDBLUE_KERNEL("nest/no-side", copy, "n", "m").nest(nest_file("transpose.nest"));
REDBLUE_KERNEL("nest/malformed", copy, "n", "m").nest(nest_file("malformed.nest"));
REDBLUE_KERNEL("nest/missing", copy, "n", "m").nest(nest_file("missing.nest"));

Outcome own_words(std::vector<std::string> words) {
  words.insert(words.begin(), "/usr/local/bin/copies");
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = own_kernels_command(static_cast<int>(words.size()), arguments.data());
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

Outcome own(const std::string& line) {
  return own_words(split(line).words);
}

TEST(OwnKernels, AreListed) {
  const Outcome outcome = own("list");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_PRED2(contains, outcome.out, "copy/rows                    n m M            yes      row");
  EXPECT_PRED2(contains, outcome.out, "copy/plain                   n m M            no");
}

TEST(OwnKernels, RunAndCountSayTheSame) {
  for (const std::string command : {"run", "count"}) {
    const std::string line = command + " copy/rows --n 4 --m 3 --M 10";
    const Json json = Json::parse(own(line + " --format json").out);
    EXPECT_EQ(json["kernel"], "copy/rows");
    EXPECT_EQ(json["M"], 10);
    ASSERT_EQ(json["phases"].size(), 1U);
    EXPECT_EQ(json["phases"][0]["path"], "copy");
    EXPECT_EQ(json["phases"][0]["reads"], 12);
    EXPECT_EQ(json["total"]["io"], 24);
    EXPECT_EQ(json["total"]["peak"], 3);
    EXPECT_EQ(json["total"]["formula"], (Json{{"reads", 12}, {"writes", 12}, {"peak", 3}}));
    const std::vector<CsvRow> rows = parse_csv(own(line + " --format csv").out);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[1].at("phase"), "total");
    EXPECT_EQ(rows[1].at("writes"), "12");
    const Outcome table = own(line);
    EXPECT_EQ(table.code, 0);
    EXPECT_PRED2(contains, table.out, "copy/rows n=4 m=3 M=10   (all in words)\n");
  }
  EXPECT_EQ(Json::parse(own("run copy/plain --n 4 --m 3 --M 1KiB --format json").out)["M"], 256);
}

// A formula need not know M. Its counts are printed even if it does not fit, together with the
// reason: a row of 3 words does not fit in M = 2.
TEST(OwnKernels, CountSaysWhatDoesNotFit) {
  for (const std::string format : {"table", "json", "csv"}) {
    const std::string line = "count copy/rows --n 4 --m 3 --format " + format;
    const Outcome none = own(line + " --M 2");
    EXPECT_EQ(none.code, 1);
    EXPECT_EQ(
        none.err,
        "redblue: copy/rows n=4 m=3 M=2: by its formula copy holds 3 words, and M = 2: take a "
        "larger M\n");
    const Outcome fits = own(line + " --M 3");
    EXPECT_EQ(fits.code, 0);
    EXPECT_EQ(fits.err, "");
    if (format == "json") {
      EXPECT_EQ(Json::parse(none.out)["fits"], false);
      EXPECT_EQ(Json::parse(none.out)["total"]["peak"], 3);
      EXPECT_EQ(Json::parse(fits.out)["fits"], true);
    }
  }
}

// Recordings also say what does not fit, whether counted or run. So does a check of a point that no
// longer fits.
TEST(OwnKernels, RecordingsSayWhatDoesNotFit) {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return (directory / name).string(); };
  for (const std::string how : {"count", "run"}) {
    directory.write("s.json", R"({"how": ")" + how + R"(", "points": [)" +
                                  R"({"kernel": "copy/rows", "n": 4, "m": 3, "M": [2, 3]}]})");
    const Outcome recorded = own("record " + path("s.json") + " -o " + path(how + ".json"));
    EXPECT_EQ(recorded.code, 0);
    EXPECT_EQ(recorded.err,
              "redblue: 2 points recorded; 1 of them does not fit in M: copy/rows n=4 m=3 M=2\n");
    EXPECT_EQ(own("check " + path(how + ".json")).code, 0);
  }
  std::string text = content_of(path("count.json"));
  text.replace(text.find("\"M\":3"), 5, "\"M\":1");  // a point with counts
  directory.write("count.json", text);
  const Outcome check = own("check " + path("count.json"));
  EXPECT_EQ(check.code, 3);
  EXPECT_PRED2(contains, check.out, "by its formula copy holds 3 words, and M = 1");
}

TEST(OwnKernels, AFormulaThatIsWrongIsNoBaseline) {
  const Outcome run = own("run copy/wrong --n 4 --m 3 --M 10");
  EXPECT_EQ(run.code, 1);
  EXPECT_PRED2(contains, run.err,
               "copy/wrong n=4 m=3 M=10: from its formula to its run, copy writes 13 -> 12");

  const TemporaryDirectory directory;
  const std::string suite =
      directory
          .write("s.json", R"({"points": [{"kernel": "copy/wrong", "n": 4, "m": 3, "M": 10}]})")
          .string();
  const std::string base = (directory / "base.json").string();
  const Outcome record = own("record " + suite + " -o " + base);
  EXPECT_EQ(record.code, 1);
  EXPECT_PRED2(contains, record.err,
               "copy/wrong n=4 m=3 M=10: from its formula to its run, copy writes 13 -> 12 words");
  EXPECT_FALSE(std::filesystem::exists(base));

  // A wrong formula is not accepted into a baseline either. The baseline here belongs to another
  // kernel, and its name was changed.
  directory.write("r.json", R"({"points": [{"kernel": "copy/rows", "n": 4, "m": 3, "M": 10}]})");
  ASSERT_EQ(own("record " + (directory / "r.json").string() + " -o " + base).code, 0);
  std::string text = content_of(base);
  for (std::size_t at = 0; (at = text.find("copy/rows")) != std::string::npos;) {
    text.replace(at, 9, "copy/wrong");
  }
  for (std::size_t at = text.find("\"reads\": 12"); at != std::string::npos;
       at = text.find("\"reads\": 12")) {
    text.replace(at, 11, "\"reads\": 11");
  }
  directory.write("base.json", text);
  const Outcome accept = own_words(
      {"check", base, "--accept", "copy/wrong n=4 m=3 M=10", "--reason", "why", "--who", "me"});
  EXPECT_EQ(accept.code, 1);
  EXPECT_PRED2(contains, accept.err,
               "copy/wrong n=4 m=3 M=10: from its formula to its run, copy writes 13 -> 12 words");
  EXPECT_EQ(content_of(base), text);
}

TEST(OwnKernels, AreHeldToTheirBaseline) {
  const TemporaryDirectory directory;
  const std::string suite =
      directory
          .write(
              "s.json",
              R"({"points": [{"kernel": ["copy/rows", "copy/plain"], "n": 4, "m": 3, "M": [2, 3]}]})")
          .string();
  const std::string base = (directory / "base.json").string();
  const Outcome record = own("record " + suite + " -o " + base);
  EXPECT_EQ(record.code, 0) << record.err;
  EXPECT_EQ(record.err,
            "redblue: 4 points recorded; 2 of them do not fit in M: copy/rows n=4 m=3 M=2, ...\n");
  EXPECT_EQ(own("check " + base).code, 0);

  std::string text = content_of(base);
  text.replace(text.find("\"reads\":12"), 10, "\"reads\":11");
  directory.write("base.json", text);
  const Outcome check = own("check " + base);
  EXPECT_EQ(check.code, 3);
  EXPECT_PRED2(contains, check.out, "copy/rows n=4 m=3 M=3  total   reads        11   12      +1");
}

// The parts of a baseline merge into the baseline. A check of the parts has the same verdicts.
TEST(OwnKernels, AreRecordedAndCheckedInParts) {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return (directory / name).string(); };
  directory.write(
      "s.json",
      R"({"points": [{"kernel": ["copy/rows", "copy/plain"], "n": [4, 5], "m": 3, "M": [2, 3]}]})");
  EXPECT_EQ(own("record " + path("s.json") + " -o " + path("base.json")).code, 0);
  std::string parts;
  for (const std::string part : {"3", "1", "2"}) {
    const std::string file = path(part + ".json");
    EXPECT_EQ(own("record " + path("s.json") + " --part " + part + "/3 -o " + file).code, 0);
    const Outcome check = own("check " + path("base.json") + " --part " + part + "/3");
    EXPECT_EQ(check.code, 0);
    EXPECT_PRED2(contains, check.out, "base.json: part " + part + "/3: same, all ");
    parts += file + " ";
  }
  EXPECT_EQ(own("merge " + parts + "-o " + path("merged.json")).code, 0);
  EXPECT_EQ(content_of(path("merged.json")), content_of(path("base.json")));
  const Outcome missing = own("merge " + path("1.json"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_PRED2(contains, missing.err, "5 of 8 points are missing, of part 2/3, 3/3: copy/rows n=4");
}

TEST(OwnKernels, MisuseIsRefused) {
  const auto refused = [](const std::string& line, const std::string& message) {
    const Outcome outcome = own(line);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_PRED2(contains, outcome.err, message);
  };
  refused("run copy/row --n 4", "no kernel is called 'copy/row': did you mean copy/rows or ");
  refused("run copy/rows --n 4 --M 10", "copy/rows: m is missing");
  refused("run copy/rows --n 4 --m 0 --M 10", "--m");
  refused("run copy/rows --n 4 --m 3 --M L2", "--M 'L2': expected words, or bytes as 32KiB");
  refused("run copy/rows --n 4 --m 3 --d 3 --M 10", "--d");
  refused("run copy/rows --n 4 --m 3 --M 10 --format xml", "expected table, json or csv");
  refused("count copy/plain --n 4 --m 3 --M 10", "copy/plain has no formula: run it");
  refused("checks", "no subcommand is called 'checks': did you mean check or ");
  const Outcome too_small = own("run copy/rows --n 4 --m 3 --M 2");
  EXPECT_EQ(too_small.code, 2);
  EXPECT_PRED2(contains, too_small.err, "redblue: ");
}

// The exit code separates a fault of the command line from a fault of the kernel.
TEST(OwnKernels, EndAsTheirExceptionsSay) {
  for (const auto& [kernel, code, message] :
       {std::tuple("fails/little", 2, "fails/little n=4 M=9: with these words"),
        {"fails/large", 2, "fails/large n=4 M=9: with these words"},
        {"fails/shape", 1, "fails/shape n=4 M=9: with these words"},
        {"fails/memory", 1, "out of memory: take smaller n, m or d"}}) {
    const Outcome outcome = own(std::string("run ") + kernel + " --n 4 --M 9");
    EXPECT_EQ(outcome.code, code) << kernel;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "redblue: " + std::string(message) + "\n");
  }
}

// A kernel that keeps such an object ends with one line and exit code 1, and the process does not
// crash when the object is destroyed later.
TEST(OwnKernels, KeepNothingOfTheirMachine) {
  for (const auto& [kernel, message] :
       {std::pair("keeps/tile",
                  "4 words are still in fast memory at the end (sums 4): a tile "
                  "outlives the work"),
        {"keeps/tile-and-fails", "sums(2, 0) leaves sums, which is 2 x 2"},
        {"keeps/phase", "phase endless is still open at the end: it outlives the work"},
        {"keeps/stream",
         "4 words are still in fast memory at the end (A 2, A 2): a tile outlives "
         "the work"}}) {
    const Outcome outcome = own(std::string("run ") + kernel + " --n 4 --M 9");
    EXPECT_EQ(outcome.code, 1) << kernel;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "redblue: " + std::string(kernel) + " n=4 M=9: " + std::string(message) + "\n");
  }
}

// Each such kernel ends only its own point, and the message names it.
TEST(OwnKernels, AreIsolated) {
  for (const auto& [kernel, message] :
       {std::pair("fails/crash", "it ended by SIGSEGV (Segmentation fault)"),
        {"fails/abort", "it ended by SIGABRT (Aborted)"},
        {"fails/exit", "it ended its process with exit code 7"},
        {"fails/number", "it threw int, which is no std::exception"}}) {
    const Outcome run = own(std::string("run ") + kernel + " --n 4 --M 9");
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "");
    if (!kSanitized) {  // a sanitizer prints its own report of a crash
      EXPECT_EQ(run.err, fmt::format("redblue: {} n=4 M=9: {}\n", kernel, message));
    }
  }
  const Outcome formula = own("count fails/formula --n 4 --m 3 --M 9");
  EXPECT_EQ(formula.code, 1);
  EXPECT_PRED2(contains, formula.err, "fails/formula n=4 m=3 M=9: it ended ");
}

TEST(OwnKernels, ACrashIsADifferenceAndAllFilesAreWritten) {
  const TemporaryDirectory directory;
  const auto recording = [](const std::string& kernel, Index n) {
    return fmt::format(R"({{"kernel": "{}", "arguments": {{"n": {}, "m": 3, "M": 10}},
      "total": {{"reads": {}, "writes": {}, "peak": 3}},
      "phases": [{{"path": "copy", "reads": {}, "writes": {}, "peak": 3}}]}})",
                       kernel, n, 3 * n, 3 * n, 3 * n, 3 * n);
  };
  std::string points = recording("copy/rows", 1);
  for (Index n = 2; n < 40; ++n) {
    points += ", " + recording(n % 10 == 0 ? "fails/formula" : "copy/rows", n);
  }
  points += R"(, {"kernel": "fails/crash", "arguments": {"n": 1, "M": 10},
      "total": {"reads": 1, "writes": 1, "peak": 3}, "phases": []})";
  const std::string base =
      directory
          .write("base.json", R"({"schema": 1, "redblue": "recording", "how": "run", "points": [)" +
                                  points + "]}")
          .string();
  const std::string also = (directory / "gate.json").string();
  // A child process of a threaded parent may inherit a lock of the sanitizer's allocator, so a
  // sanitized check runs one job.
  const std::string jobs = kSanitized ? "1" : "4";
  const Outcome check = own("check " + base + " --jobs " + jobs + " --also json=" + also);
  EXPECT_EQ(check.code, 3);
  EXPECT_PRED2(contains, check.out, "DIFFERENT, 1 of 40 points\n");
  EXPECT_PRED2(contains, check.out, "fails/crash n=1 M=10  total   point       ran  failed");
  const Json json = Json::parse(content_of(also));
  EXPECT_EQ(json["differences"][0]["kind"], "failed");
  EXPECT_PRED2(contains, json["differences"][0]["text"].get<std::string>(), "it ended ");

  const std::string suite =
      directory.write("s.json", R"({"points": [{"kernel": "fails/crash", "n": 1, "M": 10}]})")
          .string();
  const Outcome record = own("record " + suite);
  EXPECT_EQ(record.code, 1);
  EXPECT_PRED2(contains, record.err, "redblue: fails/crash n=1 M=10: it ended ");
}

// A user's kernels can have budgets. A budget equal to the words passes, and a budget one word
// lower fails.
TEST(OwnKernels, HaveBudgets) {
  const TemporaryDirectory directory;
  const auto suite = [&](const std::string& at_most) {
    return directory
        .write("suite.json",
               R"({"points": [{"kernel": "copy/rows", "n": 4, "m": 3, "M": 10, "at_most": )" +
                   at_most + "}]}")
        .string();
  };
  const std::string base = (directory / "base.json").string();
  const Outcome over = own("record " + suite(R"({"copy:reads": 11})") + " -o " + base);
  EXPECT_EQ(over.code, 1);
  EXPECT_EQ(
      over.err,
      "redblue: copy/rows n=4 m=3 M=10: copy reads 12, at most 11: let it move fewer, or raise "
      "at_most in the suite, and record it\n");
  EXPECT_FALSE(std::filesystem::exists(base));
  const Outcome unknown = own("record " + suite(R"({"over_bound": 2})") + " -o " + base);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_PRED2(contains, unknown.err, "no lower bound is known for these arguments");
  EXPECT_EQ(own("record " + suite(R"({"words": 24, "peak": 10})") + " -o " + base).code, 0);
  EXPECT_EQ(own("check " + base).code, 0);
  std::string text = content_of(base);
  text.replace(text.find("\"words\":24"), 10, "\"words\":23");
  directory.write("base.json", text);
  const Outcome check = own("check " + base);
  EXPECT_EQ(check.code, 3);
  EXPECT_PRED2(contains, check.out, "total   words  at most 23   24      +1  +4.35%  words 24");
}

// The kernel names its phases. Unprintable characters in a name do not break a table.
TEST(OwnKernels, NamesOfPhasesAreShownAsTheyCanBe) {
  const Outcome lines = own("run names/lines --n 2 --m 3 --M 10");
  EXPECT_EQ(lines.code, 0) << lines.err;
  EXPECT_PRED2(contains, lines.out, "\na\\x0ab\\x1b[2J ");
  EXPECT_EQ(
      Json::parse(own("run names/lines --n 2 --m 3 --M 10 --format json").out)["phases"][0]["path"],
      "a\nb\x1b[2J");
  const Outcome bytes = own("run names/bytes --n 2 --m 3 --M 10");
  EXPECT_EQ(bytes.code, 1);
  EXPECT_PRED2(contains, bytes.err, "the phase a\\xff has a name that is not UTF-8");
  const Outcome none = own("run copy/plain --n 2 --m 3 --M 10");
  EXPECT_PRED2(contains, none.out, "\n(outside) ");
  EXPECT_EQ(
      Json::parse(own("run copy/plain --n 2 --m 3 --M 10 --format json").out)["phases"][0]["path"],
      "");
}

// The words and the peak of each phase of the run are those of the nest: n m words are read and
// written, and two blocks of min(n, side) x min(m, side) live. `count` and `run` show the same.
TEST(OwnNests, AreFormulas) {
  std::mt19937 random(7);
  const auto any = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (int k = 0; k < 20; ++k) {
    const Index n = any(30), m = any(30), side = any(35);
    const Index peak = 2 * std::min(n, side) * std::min(m, side);
    const std::string sizes =
        fmt::format("--n {} --m {} --side {} --M {} --format json", n, m, side, peak);
    for (const std::string kernel : {"nest/same", "nest/and-formula"}) {
      SCOPED_TRACE(kernel + " " + sizes);
      const Outcome run = own(fmt::format("run {} {}", kernel, sizes));
      EXPECT_EQ(run.code, 0) << run.err;
      const Json total = Json::parse(run.out)["total"];
      EXPECT_EQ(total["reads"], n * m);
      EXPECT_EQ(total["formula"], (Json{{"reads", n * m}, {"writes", n * m}, {"peak", peak}}));
      const Json counted = Json::parse(own(fmt::format("count {} {}", kernel, sizes)).out);
      EXPECT_EQ(counted["total"]["formula"], total["formula"]);
      EXPECT_EQ(counted["phases"][0]["path"], "transpose");
      EXPECT_TRUE(counted["fits"].get<bool>());
    }
  }
  // Statements of a nest outside phases are the moves of a kernel outside phases, and M is a size.
  const Outcome rows = own("run nest/rows --n 7 --m 5 --M 29 --format json");
  EXPECT_EQ(rows.code, 0) << rows.err;
  EXPECT_EQ(Json::parse(rows.out)["phases"][0]["path"], "");
  EXPECT_EQ(Json::parse(rows.out)["total"]["formula"],
            (Json{{"reads", 35}, {"writes", 35}, {"peak", 20}}));
  const Outcome little = own("count nest/same --n 4 --m 4 --side 4 --M 31");
  EXPECT_EQ(little.code, 1);
  EXPECT_PRED2(contains, little.err, "by its formula transpose holds 32 words, and M = 31");
  EXPECT_EQ(own("run nest/same --n 4 --m 4 --side 4 --M 31").code, 2);
}

// One block of 8 x 8 words that is read twice, one tile of 5 words more, and words in another phase
// or of another matrix are refused. The message names what differs and its line in the nest.
TEST(OwnNests, RefuseRunsWithOtherWords) {
  const std::string file = nest_file("transpose.nest");
  const auto refused = [&](const std::string& kernel, const std::string& what) {
    const Outcome outcome = own("run nest/" + kernel + " --n 20 --m 12 --side 8 --M 200");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "redblue: nest/" + kernel + " n=20 m=12 side=8 M=200: " + what + "\n");
  };
  refused("reads-twice",
          "transpose reads 304 words, and 240 by the nest " + file +
              ": of A 304 and not 240 (line 8: read A[I,J]): correct the kernel or the nest");
  refused("other-matrix",
          "transpose reads 304 words, and 240 by the nest " + file +
              ": of C 64 and not 0 (no line moves it here): correct the kernel or the nest");
  refused("holds-more",
          "transpose holds 133 words at its peak (A 64, b 64, more 5), and 128 by the nest " +
              file +
              " (largest tiles: line 8: A 64, line 9: b 64): correct the kernel or the nest");
  refused("other-phase", "the kernel does not enter the phase transpose, and the nest " + file +
                             " does (line 8: read A[I,J]): correct the kernel or the nest");
  refused("outside", "the kernel moves words outside phases, and the nest " + file +
                         " does not: correct the kernel or the nest");
}

// `record` and `check` refuse such a run, too, and no baseline holds its words.
TEST(OwnNests, HoldBaselines) {
  const TemporaryDirectory directory;
  const auto path = [&](const std::string& name) { return (directory / name).string(); };
  const auto suite = [&](const std::string& kernel) {
    return directory
        .write("suite.json", R"({"points": [{"kernel": "nest/)" + kernel +
                                 R"(", "n": [20, 21], "m": 12, "side": 8, "M": [100, 200]}]})")
        .string();
  };
  const Outcome recorded = own("record " + suite("same") + " -o " + path("base.json"));
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_TRUE(
      contains(recorded.err, "4 points recorded; 2 of them do not fit in M: nest/same n=20"))
      << recorded.err;
  EXPECT_EQ(own("check " + path("base.json")).code, 0);
  const Outcome refused = own("record " + suite("reads-twice") + " -o " + path("twice.json"));
  EXPECT_EQ(refused.code, 1);
  // Points run at the same time, so either of the two that fit may be the first to be refused.
  EXPECT_PRED2(contains, refused.err, "(line 8: read A[I,J])");
  EXPECT_FALSE(std::filesystem::exists(path("twice.json")));

  std::string text = content_of(path("base.json"));
  for (std::size_t at = 0; (at = text.find("nest/same")) != std::string::npos;) {
    text.replace(at, 9, "nest/reads-twice");
  }
  directory.write("base.json", text);
  const Outcome check = own("check " + path("base.json") + " --also json=" + path("also.json"));
  EXPECT_EQ(check.code, 3);
  EXPECT_PRED2(contains, content_of(path("also.json")), "of A 304 and not 240 (line 8: ");
}

// The page shows this nest and this message.
TEST(OwnNests, AreThoseOfThePage) {
  const std::string page =
      content_of(std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs" / "gate.md");
  EXPECT_PRED2(contains, page, "```text\n" + content_of(nest_file("transpose.nest")) + "```\n");
  std::string said = own("run nest/reads-twice --n 20 --m 12 --side 8 --M 200").err;
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>(nest_file("transpose.nest"), "transpose.nest"),
        {"nest/reads-twice", "transpose/blocks"}}) {
    said.replace(said.find(from), from.size(), to);
  }
  EXPECT_PRED2(contains, page, "```text\n" + said + "```\n");
}

// A formula and a nest hold both.
TEST(OwnNests, StandBesideFormulas) {
  const Outcome outcome = own("run nest/and-false-formula --n 20 --m 12 --side 8 --M 200");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_PRED2(contains, outcome.err, "from its formula to its run, ");
}

// A nest that cannot be read, or that asks for a size that the kernel does not have, is one line
// with the file and the line, and exit code 2.
TEST(OwnNests, ThatDoNotFitAreRefused) {
  const std::string file = nest_file("transpose.nest");
  const TemporaryDirectory directory;
  for (const auto& [kernel, sizes, message] :
       {std::tuple<std::string, std::string, std::string>(
            "no-m", "\"n\": 4, \"side\": 3",
            file + ":3: the kernel nest/no-m has no size m: name it in REDBLUE_KERNEL, or write a "
                   "number here"),
        {"no-side", "\"n\": 4, \"m\": 3",
         file + ":6: the kernel nest/no-side has no size side: name it in REDBLUE_KERNEL, or give "
                "the block a size in the file"},
        {"malformed", "\"n\": 4, \"m\": 3", nest_file("malformed.nest") + ":6: "},
        {"rows", "\"n\": 4, \"m\": 13",
         nest_file("outside.nest") + ":6: the blocks of I would have the size 0"},
        {"missing", "\"n\": 4, \"m\": 3", "missing.nest': No such file or directory"}}) {
    SCOPED_TRACE(kernel);
    std::string options;
    const Json parsed = Json::parse("{" + sizes + "}");
    for (const auto& [name, size] : parsed.items()) {
      options += fmt::format(" --{} {}", name, size.dump());
    }
    directory.write("suite.json", R"({"points": [{"kernel": "nest/)" + kernel + R"(", "M": 20, )" +
                                      sizes + "}]}");
    directory.write("base.json",
                    R"({"schema": 1, "redblue": "recording", "how": "run", "points": [
      {"kernel": "nest/)" +
                        kernel + R"(", "arguments": {)" + sizes + R"(, "M": 20},
       "total": {"reads": 1, "writes": 1, "peak": 3}, "phases": []}]})");
    for (const std::string& command :
         {"run nest/" + kernel + options + " --M 20", "count nest/" + kernel + options + " --M 20",
          "record " + (directory / "suite.json").string(),
          "check " + (directory / "base.json").string()}) {
      SCOPED_TRACE(command);
      const Outcome outcome = own(command);
      EXPECT_EQ(outcome.code, 2);
      EXPECT_EQ(outcome.out, "");
      EXPECT_PRED2(contains, outcome.err, message);
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
    }
  }
}

}  // namespace
}  // namespace redblue
