#pragma once
// The options of a kernel's run: which kernel and problem, how much fast memory, where operands
// are. One table has them all, and one parser makes a Request of them. The command
// spells a key as a flag, `--kv-heads`; suites and C++ spell it `kv_heads`.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/run/run.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {

enum class OptionGroup { problem, memory, plan, operands, run, store, ranks };
std::string_view to_string(OptionGroup group);

struct Option {
  std::string_view key;   // kv_heads
  std::string_view type;  // of its value: SIZE, NAME=FILE, none|kv; empty: it is a switch
  OptionGroup group;
  std::string_view text;  // the beginning of the help
  bool repeats = false;
  std::string (*known)() = nullptr;  // the end of the help: a list of words

  [[nodiscard]] bool is_switch() const { return type.empty(); }
  [[nodiscard]] std::string help() const;  // one line
};

// In the order in which they are taken.
std::vector<Option> options();
// Requires: the table has this key.
Option option(std::string_view key);

// The texts that a person gave, by the keys of their options. A switch has the text "1".
class Settings {
 public:
  explicit Settings(Spelling spelling) : spelling_(spelling) {}
  void add(std::string_view key, std::string text);
  void drop(std::string_view key);
  [[nodiscard]] bool contains(std::string_view key) const { return texts_.contains(key); }
  [[nodiscard]] Spelling spelling() const { return spelling_; }
  // The key as the front end spells it, for messages.
  [[nodiscard]] std::string said(std::string_view key) const { return spelled(key, spelling_); }

  [[nodiscard]] std::vector<Given> all(std::string_view key) const;
  // Nothing where the option is left out. Throws: UsageError where it is given twice.
  [[nodiscard]] std::optional<Given> one(std::string_view key) const;
  // The parts of a text, or of several texts, between commas.
  [[nodiscard]] std::vector<Given> items(std::string_view key) const;
  // The first option that was given among these keys.
  [[nodiscard]] std::optional<Given> first_of(const std::vector<std::string_view>& keys) const;

 private:
  Spelling spelling_;
  std::map<std::string, std::vector<std::string>, std::less<>> texts_;
};

// Options ask this about the machine, such as the size of a cache. The default refuses to answer: a
// suite must mean the same on every machine.
class KnownMachine {
 public:
  KnownMachine() = default;
  KnownMachine(const KnownMachine&) = delete;
  KnownMachine& operator=(const KnownMachine&) = delete;
  virtual ~KnownMachine() = default;

  struct Part {
    CachePart part;
    std::string file;  // of the calibration
  };
  // Throw: UsageError. `given` asks for it.
  [[nodiscard]] virtual Topology topology(const Given& given) const;
  [[nodiscard]] virtual Part calibrated(const Given& given, const Topology& topology) const;
  [[nodiscard]] virtual Rates rates() const { return default_rates(); }
};

// Adds to a request what settings say. Settings of other keys than the table's are left alone.
// Throws: UsageError; InputError and std::system_error for a file of a device or a calibration.
void fill(const Settings& settings, const KnownMachine& machine, Request& request);

// Throws: UsageError with the nearest names if there is no kernel of this name. With `auto_too`,
// forward/auto and its like are accepted.
void check_kernel(const std::string& name, bool auto_too);

// A device by its name, `this` machine or a file. Nothing for another word.
std::optional<Device> find_device(const Given& given, const KnownMachine& machine);
std::string expected_devices();
// The words that each of `threads` workers has of each level of a device, the innermost first.
// REQUIRES: the device has levels. Throws: UsageError, which names `given`, if a level is no larger
// than the one inside it.
std::vector<Index> device_words(const Device& device, Index threads,
                                std::optional<Index> word_bytes, const Given& given);

// The directory of file:DIR. Throws: UsageError.
std::filesystem::path store_directory(const Given& given);
// Whole sectors of 4 KiB. Throws: UsageError.
Index parse_granule(const Given& given);
// Splits NAME=VALUE. Throws: UsageError.
std::pair<std::string, std::string> parse_named(const Given& given, const char* expected);
// A number of ranks. Throws: UsageError.
Index parse_ranks(const Given& given);

}  // namespace redblue
