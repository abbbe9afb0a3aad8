#pragma once
// A JSON file of measurements that hold for one machine: what `redblue calibrate` and `redblue
// tune` save. A file of another processor or of other caches is refused.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/observe/topology.hpp"
#include "runtime/text/json_field.hpp"

namespace redblue {

// Returns all caches of a topology, L1 first.
Json caches_json(const Topology& topology);

class MachineFile {
 public:
  // Parses `text`. `name` is the file and `command` the command that writes it: messages name both.
  // Throws: InputError if the text is no such JSON, and if its processor or its caches are not
  // those of `topology`.
  MachineFile(std::string_view text, std::string name, std::string command,
              const Topology& topology);

  // The document; it must not outlive this object. All its functions throw InputError.
  [[nodiscard]] JsonField top() const;
  // Throws: InputError, with `why` and the remedy.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  void check_machine(const Topology& topology) const;

  std::string name_, command_;
  Json document_;
};

// Returns the text of such a file. Throws: InputError unless it is a regular file;
// std::system_error.
std::string read_machine_file(const std::filesystem::path& file, std::string_view command);

// Returns the present time as these files have it: "2026-01-31T12:00:00Z".
std::string machine_file_date();

// Returns the path of the file `name` of this user: $XDG_CACHE_HOME/redblue/NAME. The directory is
// $HOME/.cache if XDG_CACHE_HOME is not set or is not an absolute path, as the XDG specification
// says. Returns nullopt if HOME is needed and not set.
std::optional<std::filesystem::path> machine_file_path(std::string_view name);

}  // namespace redblue
