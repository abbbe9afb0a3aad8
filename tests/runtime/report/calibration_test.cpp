// Tests the share that a calibration chooses, with made-up figures. Tests the content of its file,
// and that a file from another machine is not believed. The machines are described ones.

#include "runtime/report/calibration.hpp"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/observe/machine_file.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/description.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

using Parsed = nlohmann::json;
using Shares = std::vector<MeasuredShare>;

double fastest_share(const Shares& shares) {
  const auto best = fastest(shares);
  return best ? best->share : 0;
}
double agreeing_share(const Shares& shares) {
  const auto best = agreeing(shares);
  return best ? best->share : 0;
}

TEST(Calibration, TheFastestShareIsTheSmallestWithinNoise) {
  EXPECT_EQ(fastest_share({{0.25, 1, 0.30}, {0.5, 2, 0.40}, {1, 4, 0.35}}), 0.5);
  EXPECT_EQ(fastest_share({{0.25, 1, 0.391}, {0.5, 2, 0.393}, {1, 4, 0.40}}), 0.5)
      << "2% below 0.40 is 0.392";
  EXPECT_EQ(fastest_share({{1, 4, 0.40}, {0.5, 2, 0.40}, {0.25, 1, 0.40}}), 0.25) << "any order";
  EXPECT_EQ(fastest_share({{0.25, 1, 0.10}, {0.5, 2, 0.1015}, {1, 4, 0.1030}}), 0.5)
      << "within noise of the largest, not of the next";
}

TEST(Calibration, WhatDidNotRunIsNoChoice) {
  EXPECT_EQ(fastest_share({{0.25, 1}, {0.5, 2, 0.1}, {1, 4}}), 0.5);
  EXPECT_EQ(fastest({}), std::nullopt);
  EXPECT_EQ(fastest(Shares{{0.25, 1}, {1, 4}}), std::nullopt);
  EXPECT_EQ(agreeing(Shares{{0.25, 1, 0.3}}), std::nullopt);
}

TEST(Calibration, TheAgreeingShareIsNearestToOneByFactors) {
  EXPECT_EQ(agreeing_share({{0.25, 1, {}, 1.2}, {0.5, 2, {}, 1.1}, {1, 4, {}, 3}}), 0.5);
  EXPECT_EQ(agreeing_share({{0.25, 1, {}, 0.5}, {0.5, 2, {}, 1.9}}), 0.5) << "0.5 is a factor of 2";
  EXPECT_EQ(agreeing_share({{0.5, 2, {}, 1.0}, {0.25, 1, {}, 1.0}}), 0.25);
  EXPECT_EQ(agreeing_share({{0.25, 1, {}, 0.0}, {0.5, 2, {}, 9}}), 0.5) << "nothing moved";
}

Topology machine(std::uint64_t L1, std::uint64_t L2, const char* model = "A processor") {
  Topology topology;
  topology.source = "made up";
  topology.model = model;
  topology.cores = {{0}};
  for (const auto& [level, bytes] : {std::pair(0U, L1), std::pair(1U, L2)}) {
    if (bytes > 0) {
      topology.caches[level] = {{.bytes = bytes, .line = 64, .ways = {}, .cores = {0}}};
    }
  }
  return topology;
}

Calibration calibrated(const Topology& topology) {
  Calibration all{.topology = topology,
                  .simd = "AVX2",
                  .date = "2026-01-31T12:00:00Z",
                  .n = 99,
                  .d = 64,
                  .rounds = 3,
                  .rates = {.granule = 32,
                            .kernels = {{"backward/rows", {{0.01, 2e-11}, {0.03, 5e-11}}},
                                        {"backward/small", {{0.02, 7e-11}}}},
                            .words = {{"L1", 4096, 0.03}, {"L2", 65'536, 0.06}, {"memory", 0, 0.4}},
                            .core = CoreSpeed{5e10, 2e9}},
                  .rates_n = 98};
  if (topology.cache(CacheLevel::L1) != nullptr) {
    all.levels.push_back({.level = CacheLevel::L1,
                          .bytes = 4096,
                          .shares = {{0.25, 256}, {1, 1024, 0.1}},
                          .no_traffic = "nobody measured"});
  }
  if (topology.cache(CacheLevel::L2) != nullptr) {
    all.levels.push_back({.level = CacheLevel::L2,
                          .bytes = 65536,
                          .shares = {{0.5, 8192, 0.3, 1.1}, {0.75, 12288, 0.4, 2.0}},
                          .via = "callgrind-3",
                          .side = 128});
  }
  return all;
}

std::string refusal(const std::string& text, const Topology& topology) {
  try {
    static_cast<void>(calibrated_rates(text, "FILE", topology));
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("FILE")) << message;
    EXPECT_NE(message.find("`redblue calibrate`"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "not refused";
}

TEST(Calibration, RatesComeBackAsTheyWereWritten) {
  const Topology here = machine(4096, 65536);
  const Calibration written = calibrated(here);
  const Rates read = calibrated_rates(to_json(written), "FILE", here);
  EXPECT_EQ(read.words, written.rates.words);
  EXPECT_EQ(read.origin, "calibrated on 2026-01-31T12:00:00Z");
  EXPECT_EQ(read.granule, 32);
  ASSERT_EQ(read.kernels.size(), 2U);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(read.kernels[k].kernel, written.rates.kernels[k].kernel);
    EXPECT_EQ(read.kernels[k].samples, written.rates.kernels[k].samples);
  }
}

// An older file has no rates.
TEST(Calibration, RatesThatAreNoneAreRefused) {
  const Topology here = machine(4096, 65536);
  const auto changed = [&](const std::function<void(Parsed&)>& change) {
    Parsed json = Parsed::parse(to_json(calibrated(here)));
    change(json);
    return refusal(json.dump(), here);
  };
  const std::string older = changed([](Parsed& json) { json.erase("rates"); });
  EXPECT_EQ(older, "FILE: it has no rates: run `redblue calibrate` again");
  EXPECT_NE(refusal(to_json(calibrated(here)), machine(4096, 131072)).find("another machine"),
            std::string::npos);
  const auto of_rate = [&](double rate) {
    return changed([&](Parsed& json) {
      json["rates"]["kernels"][0]["samples"][0]["seconds_per_flop"] = rate;
    });
  };
  EXPECT_NE(of_rate(0).find("a rate of backward/rows is not above 0"), std::string::npos);
  EXPECT_NE(of_rate(-1e-9).find("seconds_per_flop is no number of at least 0"), std::string::npos);
  EXPECT_NE(changed([](Parsed& json) {
              json["rates"]["kernels"][1]["samples"] = Parsed::array();
            }).find("backward/small has no rate"),
            std::string::npos);
  EXPECT_EQ(changed([](Parsed& json) { json["rates"]["kernels"] = Parsed::array(); }), older);
  EXPECT_EQ(changed([](Parsed& json) { json["rates"]["granule"] = 0; }), older);
  const std::function<void(Parsed&)> malformed[] = {
      [](Parsed& json) { json["rates"] = 1; }, [](Parsed& json) { json["rates"].erase("granule"); },
      [](Parsed& json) { json["rates"]["kernels"][0].erase("kernel"); },
      [](Parsed& json) { json["rates"]["kernels"][0]["samples"][0]["words_per_flop"] = "few"; },
      [](Parsed& json) { json["context"].erase("date"); }};
  for (const auto& change : malformed) {
    const std::string message = changed(change);
    EXPECT_NE(message.find("not what `redblue calibrate` writes"), std::string::npos) << message;
  }
}

TEST(Calibration, AnotherMachineIsRefusedByWhatDiffers) {
  const std::string text = to_json(calibrated(machine(4096, 65536)));
  EXPECT_EQ(refusal(text, machine(4096, 65536, "Another")),
            "FILE: it is of another processor: 'A processor', and this one is 'Another': run "
            "`redblue calibrate` again");
  EXPECT_EQ(refusal(text, machine(4096, 131072)),
            "FILE: it is of another machine, whose L2 has 65536 bytes; here it has 131072 bytes: "
            "run `redblue calibrate` again");
  EXPECT_NE(refusal(text, machine(8192, 65536)).find("whose L1 has 4096 bytes"), std::string::npos);
  EXPECT_NE(refusal(text, machine(4096, 0)).find("here it has an unknown size"), std::string::npos);
  Topology nameless = machine(4096, 65536);
  nameless.model.reset();
  EXPECT_NE(refusal(text, nameless).find("this one is unknown"), std::string::npos);
  EXPECT_EQ(refusal(to_json(calibrated(nameless)), nameless), "not refused");
}

TEST(Calibration, AFileThatIsNoneIsRefused) {
  const Topology here = machine(4096, 65536);
  const std::string good = to_json(calibrated(here));
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 3}) {
    EXPECT_NE(refusal(good.substr(0, length), here).find("truncated"), std::string::npos) << length;
  }
  const auto changed = [&](const std::function<void(Parsed&)>& change) {
    Parsed json = Parsed::parse(good);
    change(json);
    return refusal(json.dump(), here);
  };
  EXPECT_NE(changed([](Parsed& json) { json["schema"] = 2; }).find("schema 2, expected 1"),
            std::string::npos);
  const std::function<void(Parsed&)> malformed[] = {
      [](Parsed& json) { json = Parsed::array(); },
      [](Parsed& json) { json = 7; },
      [](Parsed& json) { json.erase("schema"); },
      [](Parsed& json) { json.erase("context"); },
      [](Parsed& json) { json["context"].erase("model"); },
      [](Parsed& json) { json["context"]["model"] = 3; },
      [](Parsed& json) { json["context"]["caches"] = "L2"; },
      [](Parsed& json) { json["context"]["caches"][0]["bytes"] = "many"; },
      [](Parsed& json) { json["rates"] = 1; }};
  for (const auto& change : malformed) {
    const std::string message = changed(change);
    EXPECT_NE(message.find("not what `redblue calibrate` writes"), std::string::npos) << message;
  }
}

TEST(Calibration, WordsThatTakeNoTimeOrComeFromNowhere) {
  const Topology here = machine(4096, 65536);
  const auto changed = [&](const auto& change) {
    Parsed json = Parsed::parse(to_json(calibrated(here)));
    change(json["word_costs"]);
    return refusal(json.dump(), here);
  };
  EXPECT_NE(changed([](Parsed& words) { words[1]["nanoseconds"] = 0; }).find("a word of L2"),
            std::string::npos);
  EXPECT_NE(
      changed([](Parsed& words) { words[0]["nanoseconds"] = -1; }).find("nanoseconds is no number"),
      std::string::npos);
  const char* unordered = "words are not those of smaller caches, larger ones, and memory";
  EXPECT_NE(changed([](Parsed& words) { words.erase(2); }).find(unordered), std::string::npos);
  EXPECT_NE(changed([](Parsed& words) { words[0]["bytes"] = 1 << 20; }).find(unordered),
            std::string::npos);
  EXPECT_NE(changed([](Parsed& words) { words[0].erase("from"); }).find("is not what"),
            std::string::npos);
  // A file of an older version has no word costs.
  Parsed older = Parsed::parse(to_json(calibrated(here)));
  older.erase("word_costs");
  EXPECT_TRUE(calibrated_rates(older.dump(), "FILE", here).words.empty());
}

// A file of an older version has no speed of a core.
TEST(Calibration, TheSpeedOfACore) {
  const Topology here = machine(4096, 65536);
  Parsed json = Parsed::parse(to_json(calibrated(here)));
  EXPECT_EQ(calibrated_rates(json.dump(), "FILE", here).core, (CoreSpeed{5e10, 2e9}));
  for (const char* speed : {"flops_per_second", "exps_per_second"}) {
    Parsed still = json;
    still["core"][speed] = 0;
    EXPECT_NE(refusal(still.dump(), here).find("a core has no speed"), std::string::npos);
  }
  json.erase("core");
  EXPECT_EQ(calibrated_rates(json.dump(), "FILE", here).core, std::nullopt);
}

TEST(Calibration, ReadingTheFile) {
  const TemporaryDirectory directory;
  const std::string text = to_json(calibrated(machine(4096, 65536)));
  EXPECT_EQ(read_machine_file(directory.write("calibration.json", text), kCalibrate), text);
  EXPECT_THROW(read_machine_file(directory.path(), kCalibrate), InputError);
  EXPECT_THROW(read_machine_file(directory / "none.json", kCalibrate), std::system_error);
}

TEST(Calibration, ItsForms) {
  const Calibration all = calibrated(machine(4096, 65536));
  const Parsed json = Parsed::parse(to_json(all));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["context"]["simd"], "AVX2");
  EXPECT_EQ(json["context"]["date"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(json["timed"]["kernel"], "backward/rows");
  EXPECT_EQ(json["levels"][0]["agreeing"], (Parsed{{"unavailable", "nobody measured"}}));
  EXPECT_EQ(json["levels"][0]["fastest"]["words"], 1024);
  EXPECT_EQ(json["levels"][0]["shares"][0]["percent_of_peak"], Parsed());
  EXPECT_EQ(json["levels"][1]["agreeing"]["share"], 0.5);
  EXPECT_EQ(json["levels"][1]["agreeing"]["via"], "callgrind-3");

  const std::string table = to_table(all);
  for (const char* expected :
       {"L1: 4,096 bytes; traffic unavailable: nobody measured\n", "M too small",
        "n=m=d=128, by callgrind-3\n", "40.0%", "fastest\n", "agrees best\n",
        "(n=98, granules of 32 words)", "0.0300       50.0\n",
        "what a word takes, copied within: L1 0.0300 ns, L2 0.0600 ns, memory 0.4000 ns\n",
        "a core: 50.0 GF/s of multiply-adds, 2.00 G/s of exp\n"}) {
    EXPECT_NE(table.find(expected), std::string::npos) << expected << "\n" << table;
  }
  EXPECT_EQ(table.find(" \n"), std::string::npos) << table;

  const std::vector<CsvRow> rows = parse_csv(to_csv(all));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("percent_of_peak") + rows[0].at("ratio"), "");
  EXPECT_EQ(rows[2].at("agreeing") + rows[2].at("fastest"), "10");
  EXPECT_EQ(rows[3].at("M"), "12288");
}

}  // namespace
}  // namespace redblue
