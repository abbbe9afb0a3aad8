#pragma once
// Devices in reports: what they are, and what words come to by the figures of a device's file. Its
// seconds are words times the bytes of a word over bytes a second, its joules are words times
// joules a word: products, and no prediction of what a run takes.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

// The words that each level moved, and how wide they are. Figures are of words of four bytes.
struct MovedWords {
  std::vector<Index> words;
  Index word_bytes = kFloatBytes;

  // As many as have these bytes.
  [[nodiscard]] double floats(std::size_t level) const {
    return static_cast<double>(words[level]) * static_cast<double>(word_bytes) / kFloatBytes;
  }
};

// "device a100: L1 and shared memory of an SM (NVIDIA A100 white paper)", on one line.
std::string to_words(const Device& device);
// {name, source, file, levels, seconds, joules}, with what these words come to at each level and at
// all of them; null where the file has no such figure of a level. For people a table whose line
// above it says `whose` words these are, if the device has figures. Requires: as many words as
// levels.
Description device_figures(const Device& device, std::string_view whose, const MovedWords& moved);

// Devices with their levels, for `redblue list --devices`. JSON has what a file of each holds.
Description describe(const std::vector<Device>& devices);

}  // namespace redblue
