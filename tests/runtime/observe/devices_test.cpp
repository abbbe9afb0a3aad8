// Tests files of devices. Each figure is read at its level. An unknown key, a wrong type or a wrong
// order is refused with one line that names the file and the place. The devices that are known by
// name are such files.

#include "runtime/observe/devices.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/system/input_error.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr const char* kTwoLevels = R"({
  "name": "two", "source": "a manual",  // as people write it
  "levels": [
    {"name": "L1", "bytes": 32768, "line_bytes": 64, "bandwidth_bytes_per_second": 2e11,
     "joules_per_word": 5e-12, "shared_by": 1, "source": "its chapter 3"},
    {"name": "L2", "bytes": 1048576, "shared_by": 4}
  ]
})";

TEST(Devices, AFileIsReadLevelByLevel) {
  const Device device = parse_device(kTwoLevels, "two.json");
  EXPECT_EQ(device.name, "two");
  EXPECT_EQ(device.source, "a manual");
  EXPECT_EQ(device.file, "") << "a text is of no file";
  ASSERT_EQ(device.levels.size(), 2U);
  const DeviceLevel &inner = device.levels[0], &outer = device.levels[1];
  EXPECT_EQ(inner.name, "L1");
  EXPECT_EQ(inner.bytes, 32768);
  EXPECT_EQ(inner.line_bytes, 64);
  EXPECT_EQ(inner.bytes_per_second, 2e11);
  EXPECT_EQ(inner.joules_per_word, 5e-12);
  EXPECT_EQ(inner.shared_by, 1);
  EXPECT_EQ(device.source_of(inner), "its chapter 3");
  EXPECT_EQ(outer.name, "L2");
  EXPECT_EQ(outer.bytes, 1048576);
  EXPECT_EQ(outer.line_bytes, std::nullopt);
  EXPECT_EQ(outer.bytes_per_second, std::nullopt);
  EXPECT_EQ(outer.joules_per_word, std::nullopt);
  EXPECT_EQ(outer.shared_by, 4);
  EXPECT_EQ(device.source_of(outer), "a manual");
}

// If s workers share b bytes, each has b / 4s words. Additional workers run elsewhere.
TEST(Devices, WordsAreSharedByTheWorkersThatShareTheBytes) {
  const Device device = parse_device(kTwoLevels, "two.json");
  for (const auto& [workers, words] :
       {std::pair<Index, Index>{1, 262144}, {2, 131072}, {3, 87381}, {4, 65536}, {9, 65536}}) {
    EXPECT_EQ(device.levels[0].words(workers), 8192) << "no worker shares it";
    EXPECT_EQ(device.levels[1].words(workers), words) << workers;
  }
}

// Returns the message, on one line that begins with the name of the file.
std::string refused(const std::string& text) {
  std::string message = "nothing was thrown";
  try {
    parse_device(text, "bad.json");
  } catch (const InputError& error) {
    message = error.what();
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(message.find("bad.json"), 0U) << message;
  return message;
}

TEST(Devices, WhatIsNoDeviceIsRefused) {
  const auto expect = [](const std::string& levels, const std::string& pattern) {
    const std::string message =
        refused(R"({"name": "d", "source": "s", "levels": )" + levels + "}");
    EXPECT_TRUE(std::regex_search(message, std::regex(pattern))) << message << "\n" << pattern;
  };
  expect("[]", "levels: \\[\\] is no list of levels: expected \\[\\{");
  expect("{}", "levels: \\{\\} is no list");
  expect("[8192]", "level 1: 8192 is no object: expected one with name, bytes, line_bytes");
  expect(R"([{"bytes": 8}])", "level 1 has no \"name\"");
  expect(R"([{"name": "L1"}])", "level 1 \\(L1\\) has no \"bytes\"");
  expect(R"([{"name": "", "bytes": 8}])", "level 1, name: \"\" is no text");
  expect(R"([{"name": 1, "bytes": 8}])", "level 1, name: 1 is no text");
  expect(R"([{"name": "L1", "byte": 8}])", "level 1: 'byte' is no key of it: expected name, bytes");
  for (const char* bad : {"0", "-8", "6", "8.0", "1e3", "\"8KiB\"", "null", "true", "[8]",
                          "18446744073709551612", "-0"}) {
    expect(fmt::format(R"([{{"name": "L1", "bytes": {}}}])", bad),
           "level 1 \\(L1\\), bytes: .* is no size: expected whole words of 4 bytes");
  }
  for (const char* key : {"line_bytes", "shared_by"}) {
    for (const char* bad : {"0", "-1", "1.5", "\"64\"", "null"}) {
      expect(fmt::format(R"([{{"name": "L1", "bytes": 8, "{}": {}}}])", key, bad),
             fmt::format("level 1 \\(L1\\), {}: .* is no size: expected a whole number", key));
    }
  }
  for (const char* key : {"bandwidth_bytes_per_second", "joules_per_word"}) {
    for (const char* bad : {"0", "-1e9", "\"2e11\"", "null", "false", "-0.0"}) {
      expect(fmt::format(R"([{{"name": "L1", "bytes": 8, "{}": {}}}])", key, bad),
             fmt::format("level 1 \\(L1\\), {}: .* is no figure: expected a number above 0", key));
    }
    expect(fmt::format(R"([{{"name": "L1", "bytes": 8, "{}": NaN}}])", key), "line 1, column");
    expect(fmt::format(R"([{{"name": "L1", "bytes": 8, "{}": 1e999}}])", key), "no machine holds");
  }
  expect(R"([{"name": "L1", "bytes": 8, "line_bytes": 64}])", "line_bytes: 64 is more than its 8");
  expect(R"([{"name": "L1", "bytes": 8, "bytes": 8}])", "\"bytes\" is there twice");
  expect(R"([{"name": "L1", "bytes": 64}, {"name": "L2", "bytes": 64}])",
         "level 2 \\(L2\\): 64 bytes are not more than the 64 of level 1 \\(L1\\): .*inner out");
  expect(R"([{"name": "L1", "bytes": 64}, {"name": "L1", "bytes": 128}])",
         "level 2: L1 is the name of a level before it");

  EXPECT_NE(refused("[]").find("is no object: expected one with name, source, levels"),
            std::string::npos);
  EXPECT_NE(refused(R"({"source": "s", "levels": []})").find("no \"name\""), std::string::npos);
  EXPECT_NE(refused(R"({"name": "d", "levels": []})").find("no \"source\""), std::string::npos);
  EXPECT_NE(refused(R"({"name": "d", "source": "s"})").find("no \"levels\""), std::string::npos);
  EXPECT_NE(refused(R"({"name": "d", "M": 9})").find("'M' is no key"), std::string::npos);
}

// A file that ends before its last bracket is refused.
TEST(Devices, ATruncatedFileIsRefused) {
  const std::string whole = kTwoLevels;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    refused(whole.substr(0, length));
  }
}

TEST(Devices, ThoseKnownByNameAreFilesOfTheirNames) {
  ASSERT_EQ(devices().size(), known_device_files().size());
  Index before = 0;
  for (const Device& device : devices()) {
    SCOPED_TRACE(device.name);
    EXPECT_GT(device.levels.back().bytes, before) << "smallest first";
    before = device.levels.back().bytes;
    const auto file = std::ranges::find(known_device_files(), device.name + ".json",
                                        [](const KnownFile& of) { return std::string(of.name); });
    ASSERT_NE(file, known_device_files().end());
    EXPECT_EQ(parse_device(file->text, file->name).levels.size(), device.levels.size());
  }
}

// The sizes from section 4 of the paper and from the devices' documents.
TEST(Devices, SizesOfThoseKnownByName) {
  const std::pair<const char*, Index> expected[] = {
      {"gtx1060", 48}, {"mi300x", 64}, {"v100", 96},  {"rtx4090", 128},
      {"a100", 192},   {"h100", 256},  {"zen3", 512}, {"skylake-sp", 1024}};
  ASSERT_EQ(devices().size(), std::size(expected));
  for (std::size_t k = 0; k < devices().size(); ++k) {
    EXPECT_EQ(devices()[k].name, expected[k].first);
    EXPECT_EQ(devices()[k].levels.size(), 1U);
    EXPECT_EQ(devices()[k].levels.front().bytes, 1024 * expected[k].second);
  }
}

Topology with_caches(std::initializer_list<std::uint64_t> bytes) {
  Topology topology{.source = "a test", .model = "a processor", .cores = {{0}, {1}}};
  std::size_t level = 0;
  for (const std::uint64_t size : bytes) {
    if (size > 0) {
      topology.caches[level] = {{.bytes = size, .line = 64, .ways = {}, .cores = {0, 1}},
                                {.bytes = 4, .line = {}, .ways = {}, .cores = {1}}};
    }
    ++level;
  }
  return topology;
}

// The known caches of the first core, in whole words, without main memory.
TEST(Devices, ThisMachineIsTheCachesOfItsFirstCore) {
  const Device device = device_of(with_caches({32770, 0, 8388608}));
  EXPECT_EQ(device.name, "this");
  EXPECT_EQ(device.source, "a processor (a test)");
  ASSERT_EQ(device.levels.size(), 2U);
  EXPECT_EQ(device.levels[0].name, "L1");
  EXPECT_EQ(device.levels[0].bytes, 32768);
  EXPECT_EQ(device.levels[0].line_bytes, 64);
  EXPECT_EQ(device.levels[0].shared_by, 2);
  EXPECT_EQ(device.levels[0].bytes_per_second, std::nullopt) << "hwloc knows no bandwidth";
  EXPECT_EQ(device.levels[1].name, "L3");
  EXPECT_EQ(device.levels[1].bytes, 8388608);
  EXPECT_TRUE(device_of({.unavailable = "built without hwloc"}).levels.empty());
  EXPECT_TRUE(contains(thrown<InputError>([] {
                         device_of(with_caches({64, 64, 0}));
                       }),
                       "level 2 (L2): 64 bytes are not more"));
}

}  // namespace
}  // namespace redblue
