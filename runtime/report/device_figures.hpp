#pragma once
// Devices in reports: their levels, and the seconds and joules that a device's file gives for the
// words moved. Seconds are words * bytes of a word / bytes per second. Joules are words * joules
// per word. Both are products and do not predict a run.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

// The words moved at each level, and the bytes of a word. Figures of a device are for words of four
// bytes.
struct WordsOfLevels {
  std::vector<Index> words;
  Index word_bytes = kFloatBytes;

  // Returns the number of four-byte words with the same number of bytes.
  [[nodiscard]] double floats(std::size_t level) const {
    return static_cast<double>(words[level]) * static_cast<double>(word_bytes) / kFloatBytes;
  }
};

// Returns a device on one line: "device a100: L1 and shared memory of an SM (NVIDIA A100 white
// paper)".
std::string to_words(const Device& device);
// Returns {name, source, file, levels, seconds, joules}, with seconds and joules for each level and
// for their sum. They are null if the file lacks the figure. If the device has figures, the text
// has a table; `whose` in the line above it names the words. Requires: `moved` has a number for
// each level.
Description device_figures(const Device& device, std::string_view whose,
                           const WordsOfLevels& moved);

// Lists devices with their levels, for `redblue list --devices`. In JSON each device has the
// members of its file.
Description describe(const std::vector<Device>& devices);

}  // namespace redblue
