#pragma once
// The options of a run: kernel, problem, fast memory, and the sources of operands. One table lists
// them, and one parser turns them into a Request. The command spells a key as a flag, `--kv-heads`.
// Suites and C++ spell it `kv_heads`.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/run/run.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {

enum class OptionGroup { problem, memory, plan, operands, run, store, ranks };
std::string_view to_string(OptionGroup group);

struct Option {
  std::string_view key;   // kv_heads
  std::string_view type;  // kind of value: SIZE, NAME=FILE, none|kv; empty for a switch
  OptionGroup group;
  std::string_view text;  // the help, one line
  bool repeats = false;

  [[nodiscard]] bool is_switch() const { return type.empty(); }
};

// Returns all options, in the order in which fill() applies them.
std::vector<Option> options();
// Requires: the table has this key.
Option option(std::string_view key);

// The texts that a user gave, by option key. A switch has the text "1".
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
  // Empty if the option is not given. Throws: UsageError if it is given twice.
  [[nodiscard]] std::optional<Given> one(std::string_view key) const;
  // Returns the comma-separated parts of all texts of the option.
  [[nodiscard]] std::vector<Given> items(std::string_view key) const;
  // Returns the first option that the user gave, in the order of `keys`.
  [[nodiscard]] std::optional<Given> first_of(const std::vector<std::string_view>& keys) const;

 private:
  Spelling spelling_;
  std::map<std::string, std::vector<std::string>, std::less<>> texts_;
};

// Answers questions of options about the machine, such as the size of a cache. The default refuses
// to answer, because a suite must mean the same on every machine.
class KnownMachine {
 public:
  KnownMachine() = default;
  KnownMachine(const KnownMachine&) = delete;
  KnownMachine& operator=(const KnownMachine&) = delete;
  virtual ~KnownMachine() = default;

  struct Automatic {
    AutoMemory memory;
    std::string file = {};  // with the answers of `redblue tune`; empty: by the rule
  };
  // `given` is the option that asks. Throw: UsageError.
  [[nodiscard]] virtual Topology topology(const Given& given) const;
  [[nodiscard]] virtual Automatic automatic(const Given& given, const AutoRequest& request,
                                            const Topology& topology) const;
  [[nodiscard]] virtual Rates rates() const { return default_rates(); }
};

// Applies settings to a request. Ignores settings with keys that are not in the table. Throws:
// UsageError; InputError and std::system_error for a file of a device, a calibration or answers.
void fill(const Settings& settings, const KnownMachine& machine, Request& request);

// Returns the name of the kernel that a user names, and loads it if it is a nest. Throws:
// UsageError with similar names if no kernel has this name. With `auto_too`, also accepts names
// such as forward/auto.
[[nodiscard]] std::string kernel_name(const std::string& given, bool auto_too);
// Returns the kernel. Throws: as kernel_name().
KernelName kernel_named(const std::string& given);

// Returns a device by its name, by `this` (the machine), or from a file. Empty for other words.
std::optional<Device> find_device(const Given& given, const KnownMachine& machine);
std::string expected_devices();
// The words that each of `threads` workers has of each level of a device, the innermost first.
// REQUIRES: the device has levels. Throws: UsageError, which names `given`, if a level is no larger
// than the one inside it.
std::vector<Index> device_words(const Device& device, Index threads,
                                std::optional<Index> word_bytes, const Given& given);

// Returns DIR of file:DIR. Throws: UsageError.
std::filesystem::path store_directory(const Given& given);
// Parses a number of bytes that is a multiple of 4 KiB. Throws: UsageError.
Index parse_granule(const Given& given);
// Splits NAME=VALUE. Throws: UsageError.
std::pair<std::string, std::string> parse_named(const Given& given, const char* expected);
// Parses a number of ranks. Throws: UsageError.
Index parse_ranks(const Given& given);

}  // namespace redblue
