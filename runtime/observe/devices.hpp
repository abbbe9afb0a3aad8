#pragma once
// Describes devices by the levels of their documented fast memories and the cost of a moved word. A
// device is a JSON file written by hand (docs/schemas/device.schema.json). The devices known by
// name are such files in runtime/observe/devices. All types are values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/text/known_file.hpp"

namespace redblue {

// A fast memory of one worker, such as an SM, a compute unit or a core. Words move between it and
// the next level out. Figures that no document has are absent.
struct DeviceLevel {
  std::string name;
  Index bytes = 0;                              // a whole number of words
  std::optional<Index> line_bytes = {};         // bytes that move together
  std::optional<double> bytes_per_second = {};  // to and from the next level
  std::optional<double> joules_per_word = {};   // for a word to or from the next level
  std::optional<Index> shared_by = {};          // workers that share these bytes
  std::string source = {};                      // of its figures, if not the device's source

  // Returns the words that each of `workers` workers has.
  [[nodiscard]] Index words(Index workers) const;
};

struct Device {
  std::string name;
  std::string source;  // the memories and the document that describes them
  std::vector<DeviceLevel> levels =
      {};  // from the innermost out; each has more bytes than the level before
  // Of one worker. Absent if no document has them.
  std::optional<double> flops_per_second = {}, exps_per_second = {};
  std::string file = {};  // the path of its file; "" for a device known by name or from hwloc

  [[nodiscard]] const std::string& source_of(const DeviceLevel& level) const {
    return level.source.empty() ? source : level.source;
  }
};

// Parses the text of a device file. `place` begins its messages. Throws: InputError for a text that
// is not JSON, a missing or unknown key, a value of wrong type or range, or levels that do not
// grow.
Device parse_device(std::string_view text, const std::string& place);
// Reads a device file. Throws: as parse_device() and read_text().
Device read_device(const std::string& path);

// Returns the caches of the first core of a machine, from L1 out, without main memory. Has no
// levels if the topology has no caches. Throws: InputError if the caches do not grow.
Device device_of(const Topology& topology);
// Returns whether device_of() made the device.
bool is_this_machine(const Device& device);

// Returns the devices known by name, smallest first.
const std::vector<Device>& devices();

// Returns their files, which are built into the program.
const std::vector<KnownFile>& known_device_files();

}  // namespace redblue
