#pragma once
// Devices with documented memories: the levels of fast memory of each, and what a word that one of
// them moves costs. A device is a JSON file that a person writes (docs/schemas/device.schema.json);
// those that are known by name are such files too, in runtime/observe/devices. All types are
// values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/text/known_file.hpp"

namespace redblue {

// A fast memory of one worker: of an SM, a compute unit, a core. What it moves, it moves between
// itself and the next level out. A figure that no document has is absent.
struct DeviceLevel {
  std::string name;
  Index bytes = 0;                              // a whole number of words
  std::optional<Index> line_bytes = {};         // that move together
  std::optional<double> bytes_per_second = {};  // to and from the next level
  std::optional<double> joules_per_word = {};   // that moves to or from the next level
  std::optional<Index> shared_by = {};          // workers that share these bytes
  std::string source = {};                      // of its figures, where the device's is another

  // The words of each of so many workers.
  [[nodiscard]] Index words(Index workers) const;
};

struct Device {
  std::string name;
  std::string source;  // the memories and the document that describes them
  std::vector<DeviceLevel> levels =
      {};                 // from the innermost out; each has more bytes than the one before
  std::string file = {};  // from which it was read; empty: it is known by name, or hwloc's

  [[nodiscard]] const std::string& source_of(const DeviceLevel& level) const {
    return level.source.empty() ? source : level.source;
  }
};

// From the text of a file, with `place` at the beginning of messages. Throws: InputError for what
// is no device: a key that is missing or unknown, a value of another type or range, levels that do
// not grow, a text that is no JSON.
Device parse_device(std::string_view text, const std::string& place);
// Throws: as parse_device() and read_text().
Device read_device(const std::string& path);

// The caches of the first core of a machine, from L1 out; main memory is none of them. Without
// levels where the topology knows no caches. Throws: InputError if they do not grow.
Device device_of(const Topology& topology);

// The devices that are known by name, smallest first.
const std::vector<Device>& devices();

// Their files, as this program was built with them.
const std::vector<KnownFile>& known_device_files();

}  // namespace redblue
