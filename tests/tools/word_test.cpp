// Tests --word W. A fast memory of b bytes has b / W words, and w words have W w bytes. The words,
// blocks and ratios depend on that M, not on the width.

#include <string>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class WordWidth : public Cli {
 protected:
  // Checks that every "bytes" is twice the "words", or the reads and writes, of the same object,
  // and returns how many there are.
  static int expect_twice(const Json& json) {
    int found = 0;
    if (json.is_object() && json.contains("bytes")) {
      const Index words = json.contains("words")
                              ? json["words"].get<Index>()
                              : json["reads"].get<Index>() + json["writes"].get<Index>();
      EXPECT_EQ(json["bytes"].get<Index>(), 2 * words) << json;
      ++found;
    }
    if (json.is_structured()) {
      for (const Json& item : json) {
        found += expect_twice(item);
      }
    }
    return found;
  }

  // Removes the keys that depend on the width.
  static Json without_width(Json json) {
    if (json.is_object()) {
      json.erase("bytes");
      json.erase("word_bytes");
      json.erase("context");
    }
    if (json.is_structured()) {
      for (Json& item : json) {
        item = without_width(item);
      }
    }
    return json;
  }
};

TEST_F(WordWidth, DividesBytes) {
  for (const char* line :
       {"count backward/rows --n 100 --d 8", "count gradients/auto --n 100 --d 8 --mask causal",
        "plan --n 100 --d 8", "plan --n 100 --d 8 --problem attention --as all",
        "bounds --n 100 --d 8 --problem gradients", "count --as all --n 300 --d 8"}) {
    SCOPED_TRACE(line);
    const Json narrow = json(fmt::format("{} --M 4KiB --word 2", line));
    EXPECT_EQ(narrow["M"], 2048);
    EXPECT_EQ(narrow["word_bytes"], 2);
    EXPECT_GT(expect_twice(narrow), 0);
    EXPECT_EQ(without_width(narrow), without_width(json(fmt::format("{} --M 2K", line))));
    EXPECT_EQ(json(fmt::format("{} --M 4KiB --word 4", line))["M"], 1024);
  }
}

// In CSV, each line has all columns (parse_csv), and bytes are twice the words.
TEST_F(WordWidth, OfCsv) {
  for (const char* line :
       {"count backward/rows --n 100 --d 8 --M 4KiB", "plan --n 100 --d 8 --M 4KiB",
        "plan --n 100 --d 8 --M 4KiB --problem attention --as all",
        "plan --n 100 --d 8 --M 2KiB,4KiB", "bounds --n 100 --d 8 --M 4KiB",
        "bounds --n 100 --d 8 --M 2KiB,4KiB", "bounds --n 100 --d 8 --M 4KiB --partition",
        "bounds --n 100 --d 8 --M 4KiB --problem attention --as all",
        "count --as all --n 300 --d 8 --M 4KiB", "curve --n 100 --d 8"}) {
    SCOPED_TRACE(line);
    int compared = 0;
    for (const CsvRow& row : parse_csv(data(fmt::format("{} --word 2 --format csv", line)))) {
      const std::string& bytes = row.at("bytes");
      if (!bytes.empty()) {
        const long long words = row.contains("words")
                                    ? std::stoll(row.at("words"))
                                    : std::stoll(row.at("reads")) + std::stoll(row.at("writes"));
        EXPECT_EQ(std::stoll(bytes), 2 * words);
        ++compared;
      }
    }
    EXPECT_GT(compared, 0);
  }
}

TEST_F(WordWidth, OfLevelsCachesAndDevices) {
  EXPECT_EQ(json("count backward/rows --n 100 --d 8 --M 2KiB,8KiB --word 2")["levels"][0]["M"],
            1024);
  EXPECT_EQ(json(kSixCores + "count backward/rows --n 100 --d 8 --M L1 --word 2")["M"], 24576);
  EXPECT_EQ(json("plan --cache 192KiB --d 64 --word 2")["devices"][0]["M"], 98304);
  const Json floats = json("count backward/rows --n 100 --d 8 --device a100");
  const Json halves = json("count backward/rows --n 100 --d 8 --device a100 --word 2");
  EXPECT_EQ(halves["M"].get<Index>(), 2 * floats["M"].get<Index>());
}

// Seconds are bytes divided by bytes a second: with half the width, the words of the same M take
// half as long.
TEST_F(WordWidth, FiguresOfADeviceAreOfBytes) {
  const std::string device = std::string(REDBLUE_SOURCE_DIR) + "/docs/devices/45nm.json";
  const Json floats = json("count forward/rows --n 300 --d 8 --device " + device);
  const Json halves = json("count forward/rows --n 300 --d 8 --word 2 --device " + device);
  for (std::size_t level = 0; level < floats["device"]["levels"].size(); ++level) {
    const Json &of_floats = floats["device"]["levels"][level],
               &of_halves = halves["device"]["levels"][level];
    const double words = of_halves["words"].get<double>() / of_floats["words"].get<double>();
    for (const char* figure : {"seconds", "joules"}) {
      if (of_floats[figure].is_number()) {
        EXPECT_NEAR(of_halves[figure].get<double>(), of_floats[figure].get<double>() * words / 2,
                    1e-12 * of_floats[figure].get<double>())
            << figure;
      }
    }
  }
}

// The least M for a number of bytes is the least M for half as many words.
TEST_F(WordWidth, OfACurve) {
  const Json bytes = json("curve --n 300 --d 8 --word 2 --bytes 64KiB")["reached"];
  const Json words = json("curve --n 300 --d 8 --words 32K")["reached"];
  EXPECT_EQ(bytes["M"], words["M"]);
}

TEST_F(WordWidth, OfARunIsComputedInFloats) {
  const std::string text = data("run forward/rows --n 20 --d 4 --M 1KiB --word 2 --seed 1");
  EXPECT_NE(text.find("computed in float32; counted in words of 2 bytes\n"), std::string::npos);
}

TEST_F(WordWidth, Refusals) {
  const auto refused = [&](const std::string& line, const std::string& message) {
    SCOPED_TRACE(line);
    expect_refused(process(line), 2, message);
  };
  for (const char* width : {"3", "0", "8", "-2", "two"}) {
    refused(fmt::format("count backward/rows --n 9 --d 4 --M 1K --word {}", width),
            fmt::format("--word '{}': expected 2 or 4 bytes", width));
  }
  refused("count backward/rows --n 9 --d 4 --M 18014398509481984KiB --word 2",
          "--M: \"18014398509481984KiB\" is too large");
  refused("count backward/sparse-rows --n 64 --m 64 --d 16 --M 1K --make A1=random:4 --word 2",
          "--word 2: indices of sparse operands have 4 bytes, which are more than a word: leave it "
          "out");
  refused("plan --n 64 --d 16 --M 1K --make A1=random:4 --word 2", "--word 2: indices of sparse");
}

}  // namespace
}  // namespace redblue
