// Tests damaged JSON. After any edit, a reader accepts the file, or refuses it with one line that
// names the file. Readers and pictures end in bounded time. REDBLUE_CASES sets the number of random
// edits for each kind of file.

#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/gate/baseline.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/subjects/kernel_figures.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/sweep/html_report.hpp"
#include "runtime/sweep/kept_points.hpp"
#include "runtime/system/journal.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/report_forms.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {
namespace {

using Document = nlohmann::ordered_json;
using Random = std::mt19937;

template <class Items>
auto& any_of(Items& items, Random& random) {
  return items[random() % items.size()];
}

void collect(Document& value, std::vector<Document*>& found) {
  found.push_back(&value);
  if (value.is_structured()) {
    for (Document& inner : value) {
      collect(inner, found);
    }
  }
}

Document other_value(Random& random) {
  static const std::vector<std::string> texts = {"null",
                                                 "true",
                                                 "0",
                                                 "-1",
                                                 "1",
                                                 "0.5",
                                                 "2147483648",
                                                 "9223372036854775807",
                                                 "18446744073709551615",
                                                 "1e300",
                                                 "-0",
                                                 "\"\"",
                                                 "\"x\"",
                                                 "\"8K,64K\"",
                                                 "\"999999999999G\"",
                                                 "[]",
                                                 "{}",
                                                 "[1]",
                                                 "[[0]]",
                                                 "{\"M\": 0}"};
  return Document::parse(any_of(texts, random));
}

// Returns the text of the document after one random edit.
std::string edited(const std::string& text, Random& random) {
  if (random() % 8 == 0) {
    return text.substr(0, random() % text.size());
  }
  Document document = Document::parse(text, nullptr, true, true);
  std::vector<Document*> values;
  collect(document, values);
  Document& value = *any_of(values, random);
  const unsigned how = random() % 4;
  if (how == 0 && value.is_structured() && !value.empty()) {
    if (value.is_object()) {
      value.erase(std::next(value.begin(), static_cast<long>(random() % value.size())).key());
    } else {
      value.erase(random() % value.size());
    }
  } else if (how == 1 && value.is_array() && !value.empty()) {
    value.push_back(value[random() % value.size()]);
  } else if (how == 2 && value.is_object() && !value.empty()) {  // a member twice
    const std::string key =
        std::next(value.begin(), static_cast<long>(random() % value.size())).key();
    value["TWICE"] = 0;
    std::string twice = document.dump();
    return twice.replace(twice.find("TWICE"), 5, key);
  } else {
    value = other_value(random);
  }
  return document.dump();
}

// Returns the first fault of a message, or an empty text.
std::string fault_of(const std::string& message, const std::string& file) {
  for (const char* words : {"cannot use", "type must be", "key '", "array index", "json.exception",
                            "no argument is called", "is out of range"}) {
    if (message.find(words) != std::string::npos) {
      return fmt::format("words of a library: {}", words);
    }
  }
  return message.find('\n') != std::string::npos   ? "more than one line"
         : message.find(file) == std::string::npos ? "it does not name the file"
                                                   : "";
}

class Damaged : public Cli {
 protected:
  void SetUp() override {
    directory_.write("s.json", R"({"how": "count", "points": [
      {"kernel": ["backward/small", "backward/rows"], "n": [64, 128], "d": 8,
       "M": {"from": 300, "to": 5000, "times": 4}, "at_most": {"words": 10000000}},
      {"kernel": "backward/rows", "n": 64, "m": 32, "d": 8, "M": ["400,2K", "500,2K"]},
      {"kernel": "forward/rows", "n": 64, "d": 8, "M": [300, 600], "mask": "causal"}]})");
    for (const char* line : {"record s.json -o b.json", "record s.json --part 1/2 -o p1.json",
                             "record s.json --part 2/2 -o p2.json", "sweep s.json -o sw",
                             "sweep s.json --part 1/2 -o sw1", "sweep s.json --part 2/2 -o sw2"}) {
      ASSERT_EQ(redblue(line).code, 0) << line;
    }
  }

  // Passes many edits of the text to a reader of the named file.
  void every_edit(const std::string& text, const std::string& file,
                  const std::function<void(const std::string&)>& read) const {
    Random random(seed_of_case(0));
    int taken = 0;
    for (std::int64_t k = 0; k < cases(150); ++k) {
      const std::string damaged = edited(text, random);
      const auto start = std::chrono::steady_clock::now();
      try {
        read(damaged);
        ++taken;
      } catch (const InputError& error) {
        EXPECT_EQ(fault_of(error.what(), file), "") << error.what() << "\n" << damaged;
      } catch (const std::exception& error) {
        ADD_FAILURE() << typeid(error).name() << ": " << error.what() << "\n" << damaged;
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      EXPECT_LT(seconds.count(), 5 * kSlowdown) << damaged;
    }
    EXPECT_GT(taken, 0) << "no edit was harmless";
  }

  // Runs the command with edited files. It must end with a documented exit code and leave no
  // partial output.
  void every_edit_of(const std::string& file, const std::string& line,
                     const std::string& output) const {
    const std::string text = content_of(directory_ / file);
    Random random(seed_of_case(1));
    for (std::int64_t k = 0; k < cases(15); ++k) {
      directory_.write(file, edited(text, random));
      std::filesystem::remove_all(directory_ / output);
      const Outcome outcome = redblue(line);
      EXPECT_LE(outcome.code, 3) << line << "\n" << content_of(directory_ / file);
      if (outcome.code == 1 || outcome.code == 2) {
        const std::size_t last = outcome.err.rfind("redblue: ");
        EXPECT_NE(last, std::string::npos) << outcome.err;
        EXPECT_EQ(fault_of(outcome.err.substr(last, outcome.err.size() - last - 1), ""), "")
            << outcome.err << content_of(directory_ / file);
        EXPECT_FALSE(std::filesystem::exists(directory_ / output)) << outcome.err;
      }
    }
    directory_.write(file, text);
  }
};

TEST_F(Damaged, SuitesAreReadOrRefused) {
  const std::vector<Subject> subjects = kernel_subjects();
  const std::string file = (directory_ / "d.json").string();
  every_edit(content_of(directory_ / "s.json"), file, [&](const std::string& text) {
    directory_.write("d.json", text);
    static_cast<void>(read_suite(file, subjects, {"run", "count"}));
  });
}

TEST_F(Damaged, RecordingsAreReadOrRefused) {
  for (const char* whole : {"b.json", "p1.json"}) {
    every_edit(content_of(directory_ / whole), "d.json", [&](const std::string& text) {
      static_cast<void>(to_json(parse_recording(text, "d.json")));
    });
  }
}

TEST_F(Damaged, SweepsAreDrawnOrRefused) {
  Document sweep = Document::parse(content_of(directory_ / "sw/sweep.json"));
  for (Document& point : sweep["points"]) {  // as if they were timed
    point["speed"] = {{"gflops", 3.5}, {"peak_gflops", 40.5}, {"words_per_second", 1e9}};
    point["total"]["seconds"] = 0.25;
  }
  every_edit(sweep.dump(), "d.json", [&](const std::string& text) {
    const Sweep read = parse_sweep(text, "d.json");
    try {
      for (const Picture& picture : figures_of(read, 4)) {
        static_cast<void>(script_of(picture, PictureFormat::svg, "x"));
      }
      static_cast<void>(to_html(read, {}));
      static_cast<void>(to_csv(read));
    } catch (const std::logic_error&) {  // the command adds the name of the file
    }
  });
}

TEST_F(Damaged, JournalsOfSweepsAreReadOrRefused) {
  const std::vector<std::string> lines = whole_lines(content_of(directory_ / "sw1/points.jsonl"));
  const SweptPart other{
      "sw2", parse_kept(whole_lines(content_of(directory_ / "sw2/points.jsonl")), "sw2")};
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
    every_edit(lines[at], "d.jsonl", [&](const std::string& line) {
      std::vector<std::string> damaged = lines;
      damaged[at] = line;
      const KeptPoints kept = parse_kept(damaged, "d.jsonl");
      static_cast<void>(to_csv(merge({{"d.jsonl", kept}, other}).sweep));
    });
  }
}

TEST_F(Damaged, CalibrationsAreReadOrRefused) {
  Calibration whole{.topology = {}, .simd = "AVX2", .date = "2026-01-31T12:00:00Z"};
  whole.topology.source = "made up";
  whole.levels.push_back({.level = CacheLevel::L2,
                          .bytes = 65'536,
                          .shares = {{0.5, 8192, 0.4, 1.1}},
                          .via = "nothing"});
  whole.rates = {.granule = 32,
                 .kernels = {{"backward/rows", {{0.01, 2e-11}, {0.03, 5e-11}}}},
                 .words = {{"L1", 4096, 0.03}, {"memory", 0, 0.4}},
                 .core = CoreSpeed{5e10, 2e9}};
  every_edit(to_json(whole), "d.json", [&](const std::string& text) {
    static_cast<void>(calibrated_rates(text, "d.json", whole.topology));
  });
}

TEST_F(Damaged, AnswersOfTuneAreReadOrRefused) {
  Topology topology;
  topology.source = "made up";
  const TunedProblem problem{.mask = "full",
                             .n = 100,
                             .m = 100,
                             .d = 8,
                             .date = "2026-01-31T12:00:00Z",
                             .kernels = {{"attention/rows", {CacheLevel::L2, 0.5}, 1e-3, 1e-3}}};
  every_edit(tuned_text({problem}, topology), "d.json", [&](const std::string& text) {
    const std::vector<TunedProblem> read = read_tuned(text, "d.json", topology);
    EXPECT_EQ(read_tuned(tuned_text(read, topology), "d.json", topology), read);
  });
}

TEST_F(Damaged, CommandsEndWithADocumentedCode) {
  every_edit_of("s.json", "record s.json -o o.json", "o.json");
  every_edit_of("b.json", "check b.json --also json=o.json", "o.json");
  every_edit_of("p1.json", "merge p1.json p2.json -o o.json", "o.json");
  every_edit_of("sw/sweep.json", "report sw -o o.html", "o.html");
}

// A picture once never ended on this input: marks in units of d^2 were drawn down to M = 0.
TEST_F(Damaged, SweepsHaveNoLevelOfNoWords) {
  Document sweep = Document::parse(content_of(directory_ / "sw/sweep.json"));
  std::size_t k = 0;
  while (!sweep["points"][k].contains("levels")) {
    ++k;
  }
  sweep["points"][k]["levels"][0]["M"] = 0;
  directory_.write("sw/sweep.json", sweep.dump());
  expect_refused(process("report sw -o o.html"), 1,
                 fmt::format("sw/sweep.json, points {}, levels 1, M is no whole number of at least "
                             "1: 0",
                             k + 1));
}

}  // namespace
}  // namespace redblue
