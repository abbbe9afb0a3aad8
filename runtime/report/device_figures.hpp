#pragma once
// Devices in reports: what they are, and what words come to by the figures of a device's file. Its
// seconds are words times the bytes of a word over bytes a second, its joules are words times
// joules a word: products, and no prediction of what a run takes.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/devices.hpp"
#include "runtime/text/json.hpp"

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

// {name, source, file, levels, seconds, joules}, with what these words come to at each level and at
// all of them; null where the file has no such figure of a level. Requires: as many words as
// levels.
Json device_json(const Device& device, const MovedWords& moved);
// "device a100: L1 and shared memory of an SM (NVIDIA A100 white paper)", on one line.
std::string to_words(const Device& device);
// The products for people, a table whose line above it says `whose` words these are; empty for a
// device without figures.
std::string figures_text(const Device& device, std::string_view whose, const MovedWords& moved);

// Devices with their levels, for `redblue list --devices`.
std::string list_table(const std::vector<Device>& devices);
// The documents of the devices, in an array: each is what a file of the device holds.
Json list_json(const std::vector<Device>& devices);
std::string list_csv(const std::vector<Device>& devices);

}  // namespace redblue
