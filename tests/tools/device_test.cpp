// Tests `--device`. The levels of a device count as the same words of `--M` do. A time or energy is
// the words times the device's figure. A device is named from the list, by a file, or as `this`
// machine.

#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/observe/devices.hpp"
#include "runtime/observe/topology.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

const std::string kOfDevices = " --n 300 --d 16 ";
// 500, 4,000 and 20,000 words.
constexpr const char* kThreeLevels = R"({"name": "three", "source": "a manual", "levels": [
    {"name": "L1", "bytes": 2000, "bandwidth_bytes_per_second": 4e11, "joules_per_word": 1e-12},
    {"name": "L2", "bytes": 16000, "bandwidth_bytes_per_second": 1e11, "joules_per_word": 5e-12},
    {"name": "L3", "bytes": 80000, "line_bytes": 128, "bandwidth_bytes_per_second": 2e10,
     "joules_per_word": 3e-11, "source": "its page 7"}]})";

class DeviceFiles : public Cli {
 protected:
  DeviceFiles() { directory_.write("three.json", kThreeLevels); }

  // Returns the report for a device, without the key that a report for `--M` does not have.
  [[nodiscard]] Json of_device(const std::string& line) const {
    Json report = json(line);
    EXPECT_EQ(report.erase("device"), 1U) << line;
    return report;
  }
  // Returns the report for `--M`, which may name caches.
  [[nodiscard]] Json of_M(const std::string& line) const {
    Json report = json(line);
    EXPECT_FALSE(report.contains("device")) << line;
    report["context"].erase("M_from");
    return report;
  }
};

TEST_F(DeviceFiles, LevelsAreThoseOfM) {
  for (const std::string kernel : {"backward/rows", "forward/rows", "attention/auto"}) {
    SCOPED_TRACE(kernel);
    const std::string count = "count " + kernel + kOfDevices;
    const Json expected = of_M(count + "--M 500,4000,20000");
    EXPECT_EQ(of_device(count + "--device three.json"), expected);
    EXPECT_EQ(of_device(count + "--device ./three.json"), expected);
    EXPECT_EQ(of_device(count + "--device " + (directory_ / "three.json").string()), expected);
  }
  const std::string large = "backward/large" + kOfDevices;
  EXPECT_EQ(of_device("count " + large + "--device a100"), of_M("count " + large + "--M 192KiB"));
}

TEST_F(DeviceFiles, LevelsOfPlansAndBounds) {
  for (const std::string command : {"plan", "bounds"}) {
    EXPECT_EQ(of_device(command + kOfDevices + "--device v100"),
              of_M(command + kOfDevices + "--M 96KiB"));
    EXPECT_EQ(of_device(command + kOfDevices + "--device three.json"),
              of_M(command + kOfDevices + "--M 500,4000,20000"));
  }
  EXPECT_EQ(of_device("plan backward/rows" + kOfDevices + "--device three.json"),
            of_M("plan backward/rows" + kOfDevices + "--M 500,4000,20000"));
}

// A plan multiplies the words of its first choice by the device's figures. `bounds` multiplies the
// active bounds.
TEST_F(DeviceFiles, FiguresOfPlansAndBounds) {
  const Json plan = json("plan" + kOfDevices + "--device three.json");
  const Json bounds = json("bounds" + kOfDevices + "--device three.json");
  const double bandwidth[] = {4e11, 1e11, 2e10}, joules[] = {1e-12, 5e-12, 3e-11};
  double least = 0, planned = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const Json& of_plan = plan["device"]["levels"][k];
    const Json& of_bound = bounds["device"]["levels"][k];
    EXPECT_EQ(of_plan["words"], plan["plan"]["levels"][k]["total"]["io"]);
    EXPECT_EQ(of_bound["words"], bounds["levels"][k]["lower_bound"]["words"]);
    for (const Json& level : {of_plan, of_bound}) {
      const auto words = level["words"].get<double>();
      EXPECT_DOUBLE_EQ(level["seconds"].get<double>(), words * 4 / bandwidth[k]);
      EXPECT_DOUBLE_EQ(level["joules"].get<double>(), words * joules[k]);
    }
    EXPECT_LE(of_bound["joules"], of_plan["joules"]) << "no algorithm takes fewer words";
    planned += of_plan["joules"].get<double>();
    least += of_bound["joules"].get<double>();
  }
  EXPECT_DOUBLE_EQ(plan["device"]["joules"].get<double>(), planned);
  EXPECT_DOUBLE_EQ(bounds["device"]["joules"].get<double>(), least);
  for (const std::string command : {"plan", "bounds"}) {
    const std::string text = data(command + kOfDevices + "--device three.json");
    EXPECT_NE(text.find("device three of three.json: a manual\n"), std::string::npos) << text;
    EXPECT_NE(text.find("joules are words * joules a word; neither predicts a run"),
              std::string::npos)
        << text;
  }
}

// At each level, seconds = words * 4 / bandwidth and joules = words * joules a word. The device
// also reports their sums.
TEST_F(DeviceFiles, FiguresAreProducts) {
  for (const std::string kernel : {"backward/rows", "forward/rows", "attention/rows"}) {
    for (const std::string command : {"count ", "run "}) {
      SCOPED_TRACE(command + kernel);
      const Json report = json(command + kernel + kOfDevices + "--device three.json");
      const Json& device = report["device"];
      EXPECT_EQ(device["name"], "three");
      EXPECT_EQ(device["source"], "a manual");
      EXPECT_EQ(device["file"], "three.json");
      ASSERT_EQ(device["levels"].size(), 3U);
      const double bandwidth[] = {4e11, 1e11, 2e10}, joules[] = {1e-12, 5e-12, 3e-11};
      double all_seconds = 0, all_joules = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        const Json& level = device["levels"][k];
        double words = report["levels"][k]["total"]["io"].get<double>();
        if (report.contains("forward")) {
          words += report["forward"]["levels"][k]["total"]["io"].get<double>();
        }
        EXPECT_EQ(level["name"], fmt::format("L{}", k + 1));
        EXPECT_EQ(level["bytes"], 4 * report["levels"][k]["M"].get<Index>());
        EXPECT_EQ(level["words"], words);
        EXPECT_DOUBLE_EQ(level["seconds"].get<double>(), words * 4 / bandwidth[k]);
        EXPECT_DOUBLE_EQ(level["joules"].get<double>(), words * joules[k]);
        all_seconds += words * 4 / bandwidth[k];
        all_joules += words * joules[k];
      }
      EXPECT_DOUBLE_EQ(device["seconds"].get<double>(), all_seconds);
      EXPECT_DOUBLE_EQ(device["joules"].get<double>(), all_joules);
      EXPECT_EQ(device["levels"][2]["line_bytes"], 128);
      EXPECT_EQ(device["levels"][2]["source"], "its page 7");
      EXPECT_EQ(device["levels"][0]["source"], "a manual");
    }
  }
}

// A level without a figure has no product, and then the device has no sum.
TEST_F(DeviceFiles, WhatIsNotDocumentedIsNull) {
  directory_.write("part.json", R"({"name": "part", "source": "s", "levels": [
      {"name": "L1", "bytes": 2000, "joules_per_word": 2},
      {"name": "L2", "bytes": 16000, "bandwidth_bytes_per_second": 8}]})");
  const std::string count = "count backward/rows" + kOfDevices + "--device ";
  const Json device = json(count + "part.json")["device"];
  for (const Json& json : {device, device["levels"][0]}) {
    EXPECT_TRUE(json["seconds"].is_null()) << json;
  }
  for (const Json& json : {device, device["levels"][1]}) {
    EXPECT_TRUE(json["joules"].is_null()) << json;
  }
  EXPECT_EQ(device["levels"][0]["joules"], 2 * device["levels"][0]["words"].get<Index>());
  EXPECT_EQ(device["levels"][1]["seconds"].get<double>(),
            device["levels"][1]["words"].get<double>() / 2);
  for (const char* key : {"line_bytes", "shared_by", "bandwidth_bytes_per_second"}) {
    EXPECT_TRUE(device["levels"][0].at(key).is_null()) << key;
  }

  const std::string with = data(count + "part.json"), without = data(count + "zen3");
  EXPECT_NE(with.find("device part of part.json: s\n"), std::string::npos) << with;
  EXPECT_NE(with.find("seconds are words * 4 / bytes a second, joules are words * joules a word; "
                      "neither predicts a run"),
            std::string::npos)
      << with;
  EXPECT_NE(without.find("device zen3: L2 of a core"), std::string::npos) << without;
  EXPECT_EQ(without.find("seconds"), std::string::npos) << "it has no figures: " << without;
  const Json zen3 = json(count + "zen3")["device"];
  EXPECT_TRUE(zen3["file"].is_null());
  EXPECT_TRUE(zen3["seconds"].is_null());
  EXPECT_EQ(zen3["levels"][0]["words"], json(count + "zen3")["total_from_nothing"]);
}

// Three workers that share 80,000 bytes have a third each.
TEST_F(DeviceFiles, WorkersShareALevel) {
  directory_.write("shared.json", R"({"name": "shared", "source": "s", "levels": [
      {"name": "L1", "bytes": 2000}, {"name": "L2", "bytes": 60000, "shared_by": 3}]})");
  const std::string count = "count backward/rows" + kOfDevices;
  for (const auto& [threads, M] : {std::pair(1, 15000), {2, 7500}, {3, 5000}, {4, 5000}}) {
    const std::string of_threads = fmt::format("--threads {} ", threads);
    EXPECT_EQ(of_device(count + of_threads + "--device shared.json"),
              of_M(count + of_threads + fmt::format("--M 500,{}", M)));
  }
}

TEST_F(DeviceFiles, ThisMachineIsItsCaches) {
  if (const std::string why = synthetic_topology("core:1 pu:1").unavailable; !why.empty()) {
    expect_refused(
        process("count forward/rows" + kOfDevices + "--device this"), 2,
        "--device this: the caches are not known \\(built without hwloc\\): give a file");
    return;
  }
  const std::string count = kSixCores + "count forward/rows" + kOfDevices;
  EXPECT_EQ(of_device(count + "--device this"), of_M(count + "--M L1,L2,L3"));
  const Json device = json(count + "--device this")["device"];
  EXPECT_EQ(device["name"], "this");
  EXPECT_TRUE(device["file"].is_null());
  ASSERT_EQ(device["levels"].size(), 3U);
  EXPECT_EQ(device["levels"][0]["bytes"], 49152);
  EXPECT_EQ(device["levels"][0]["line_bytes"], 64);
  EXPECT_EQ(device["levels"][0]["shared_by"], 1);
  EXPECT_EQ(device["levels"][1]["shared_by"], 2);
  EXPECT_TRUE(device["levels"][2]["line_bytes"].is_null()) << "hwloc does not know it";
  // Two workers share the L2 of the first core, as they do with --M.
  EXPECT_EQ(of_device(count + "--threads 2 --device this"),
            of_M(count + "--threads 2 --M L1,L2,L3"));

  const Json caches = json(kSixCores + "plan --cache this --d 16 --n 300")["devices"];
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[1]["device"], "this L2");
  EXPECT_EQ(caches[1]["bytes"], 1310720);
  expect_refused(
      process("HWLOC_SYNTHETIC=pu:2 " + count.substr(kSixCores.size()) + "--device this"), 2,
      "--device this: the caches are not known \\(hwloc .*synthetic.*--M 8192");
}

// Each level has a row, equal to the row of a cache with the same number of bytes.
TEST_F(DeviceFiles, CachesOfFiles) {
  const Json rows = json("plan --cache three.json,a100 --d 16 --n 300")["devices"];
  const Json sizes = json("plan --cache 2000B,16000B,80000B,192KiB --d 16 --n 300")["devices"];
  const std::vector<std::pair<const char*, const char*>> names = {
      {"three L1", "a manual"},
      {"three L2", "a manual"},
      {"three L3", "its page 7"},
      {"a100", "L1 and shared memory of an SM (NVIDIA A100 white paper)"}};
  ASSERT_EQ(rows.size(), names.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k]["device"], names[k].first);
    EXPECT_EQ(rows[k]["source"], names[k].second);
    for (const char* key : {"bytes", "M", "best", "paper", "lower_bound"}) {
      EXPECT_EQ(rows[k][key], sizes[k][key]) << names[k].first;
    }
  }
}

// Each device on the list can also be given as a file with the listed facts.
TEST_F(DeviceFiles, TheListIsOfFiles) {
  const Json list = json("list --devices");
  const std::string table = data("list --devices");
  const std::vector<CsvRow> rows = parse_csv(data("list --devices --format csv"));
  ASSERT_EQ(list["devices"].size(), devices().size());
  ASSERT_EQ(rows.size(), devices().size()) << "of one level each";
  const std::string count = "count backward/rows" + kOfDevices + "--device ";
  for (std::size_t k = 0; k < devices().size(); ++k) {
    const Device& device = devices()[k];
    SCOPED_TRACE(device.name);
    EXPECT_EQ(list["devices"][k]["name"], device.name);
    EXPECT_EQ(rows[k].at("device"), device.name);
    EXPECT_EQ(rows[k].at("bytes"), std::to_string(device.levels.front().bytes));
    EXPECT_EQ(rows[k].at("source"), device.source);
    EXPECT_NE(table.find(device.name + ": " + device.source + "\n"), std::string::npos);
    directory_.write("same.json", list["devices"][k].dump());
    EXPECT_EQ(of_device(count + "same.json"), of_device(count + device.name));
  }
  expect_refused(process("list --devices --n 4 --d 3"), 2, "--n 4: --devices lists no kernels");
}

TEST_F(DeviceFiles, BadOnes) {
  const std::string count = "count backward/rows" + kOfDevices;
  const auto refused = [&](const std::string& line, const std::string& message, int code = 2) {
    SCOPED_TRACE(line);
    expect_refused(process(line), code, message);
  };
  refused(count + "--device a10",
          "--device: no device is called 'a10': expected gtx1060, .*, this, or a file as ./mine");
  refused(count + "--device ''", "--device: no device is called ''");
  refused(count + "--device a100 --device v100", "--device is given 2 times");
  refused(count + "--device a100 --M 8K", "--M '8K': --device 'a100' says how much there is");
  refused(count, "--M is missing: .* --M 8192, or --device a100");
  refused(count + "--device none.json", "cannot read 'none.json': No such file", 1);
  refused("plan --cache none.json --d 4", "cannot read 'none.json': No such file", 1);
  refused("plan --cache v100 --d 4 --device a100", "--device 'a100': --cache says");
  refused("count backward/small" + kOfDevices + "--device three.json",
          "--device three: backward/small has one level of fast memory; .*backward/rows.* have "
          "several; "
          "give one level of it, as --M 20000");
  refused(count + "--prefetch 2 --device three.json", "--prefetch 2: with several levels");
  refused(count + "--device /dev/zero", "/dev/zero is a device: expected a regular file");

  directory_.write("bad.json", R"({"name": "bad", "source": "s", "levels": [
      {"name": "L1", "bytes": 64000}, {"name": "L2", "bytes": 32000}]})");
  refused(count + "--device bad.json",
          "--device: bad.json, level 2 \\(L2\\): 32000 bytes are not more than the 64000");
  refused("plan --cache 4KiB,bad.json --d 4", "--cache: bad.json, level 2 \\(L2\\): 32000 bytes");
  directory_.write("bad.json", std::string(kThreeLevels).substr(0, 200));
  refused(count + "--device bad.json", "--device: bad.json, line 3, column .*: syntax error");
  directory_.write("bad.json", R"({"name": "bad", "source": "s", "levels": [
      {"name": "L1", "bytes": 64000}, {"name": "L2", "bytes": 80000, "shared_by": 2}]})");
  refused(count + "--threads 2 --device bad.json",
          "--device bad.json: each of 2 workers has 10000 words of L2, and 16000 of the level "
          "inside it: give fewer threads, or M in words");
}

}  // namespace
}  // namespace redblue
