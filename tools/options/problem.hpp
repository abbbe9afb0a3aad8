#pragma once
// The options that choose a kernel, its problem and its M, shared by the subcommands that plan or
// run.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/run/run.hpp"
#include "tools/cli/command.hpp"
#include "tools/options/device.hpp"

namespace redblue {

class ShapeOptions {
 public:
  explicit ShapeOptions(CLI::App& app);
  // Throws (all): UsageError.
  void fill(Request& request) const;
  // All lengths but the width, of which there may be several.
  void fill_lengths(Request& request) const;
  [[nodiscard]] std::vector<Index> widths() const;

 private:
  TextOption n_, m_, d_;
};

// Several problems of one shape, which may share keys and values.
class HeadsOption {
 public:
  explicit HeadsOption(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption heads_, kv_heads_;
};

// --M, or --device in its place. Requires: the request to fill has its threads.
class FastMemoryOption {
 public:
  explicit FastMemoryOption(CLI::App& app);
  // A request that has an M keeps it where none is given. Throws: UsageError, also if both are
  // given or, of a request without an M, missing.
  void fill(Request& request) const;
  [[nodiscard]] std::vector<const TextOption*> options() const { return {&M_, &device_.option()}; }
  [[nodiscard]] bool given() const {
    return M_.get().has_value() || device_.option().get().has_value();
  }

 private:
  TextOption M_;
  DeviceOption device_;
};

// --word, the bytes of a word, and --sums, those of a sum. To be filled before M, whose bytes are
// so many words.
class WordOption {
 public:
  explicit WordOption(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption word_, sums_;
};

// --word-costs. Requires: the request to fill has its M.
class WordCostsOption {
 public:
  explicit WordCostsOption(CLI::App& app);
  // Throws: UsageError; as machine_rates().
  void fill(Request& request) const;
  [[nodiscard]] const TextOption& option() const { return costs_; }

 private:
  TextOption costs_;
};

// --make. Throws: UsageError.
class MakeOption {
 public:
  explicit MakeOption(CLI::App& app);
  void fill(Request& request) const;

 private:
  TextOption make_;
};

// Where operands have entries, for a count: in files, or by a rule and a seed.
class PatternOptions {
 public:
  explicit PatternOptions(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption in_;
  MakeOption make_;
  TextOption seed_;
};

// Operands from files, made by a rule, or from a seed.
class InputOptions {
 public:
  explicit InputOptions(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption in_;
  MakeOption make_;
  TextOption seed_, scale_;
};

// Fills `files` from NAME=FILE, each name once. Throws: UsageError.
void fill_files(const TextOption& option, Request& request,
                std::map<std::string, std::filesystem::path>& files);

// Throws: UsageError if `out` is a file of an operand or of the mask.
void refuse_inputs(const Given& out, const Request& request);

// --dv.
class ValueWidthOption {
 public:
  explicit ValueWidthOption(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption dv_;
};

// --wanted.
class WantedOption {
 public:
  explicit WantedOption(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;
  [[nodiscard]] const TextOption& option() const { return wanted_; }

 private:
  TextOption wanted_;
};

// --activation.
class ActivationOption {
 public:
  explicit ActivationOption(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;
  [[nodiscard]] const TextOption& option() const { return activation_; }

 private:
  TextOption activation_;
};

// --mask.
class MaskOption {
 public:
  explicit MaskOption(CLI::App& app);
  void fill(Request& request) const;
  [[nodiscard]] const TextOption& option() const { return mask_; }

 private:
  TextOption mask_;
};

// --objective, by default words. `what` begins the help: what is for the fewest, or for least time.
class ObjectiveOption {
 public:
  ObjectiveOption(CLI::App& app, const std::string& what);
  // Throws: UsageError.
  [[nodiscard]] Objective get() const;
  [[nodiscard]] const TextOption& option() const { return objective_; }

 private:
  TextOption objective_;
};

// Throws: UsageError with the nearest names if there is no kernel of this name. With `auto_too`,
// forward/auto and its like are accepted.
void check_kernel(const std::string& name, bool auto_too);

class ProblemOptions {
 public:
  explicit ProblemOptions(CLI::App& app);
  // Throws: UsageError; for an unknown kernel it has the names nearest to it.
  void fill(Request& request) const;
  // All but the kernel.
  void fill_problem(Request& request) const;
  // The kernel and the blocks, which a caller may refuse. Nothing where they are left out.
  [[nodiscard]] std::optional<std::string> kernel() const { return kernel_.get(); }
  [[nodiscard]] const TextOption& blocks() const { return blocks_; }
  [[nodiscard]] bool has_M() const { return M_.given(); }

 private:
  OptionalArgument kernel_;
  ShapeOptions shape_;
  FastMemoryOption M_;
  TextOption blocks_;
  ObjectiveOption objective_;
  TextOption threads_, prefetch_, sharing_, softmax_scale_;
  ActivationOption activation_;
  ValueWidthOption dv_;
  MaskOption mask_;
  WantedOption wanted_;
};

// Operands, intermediates and results on disk.
class StoreOptionGroup {
 public:
  explicit StoreOptionGroup(CLI::App& app);
  // Throws: UsageError.
  void fill(Request& request) const;

 private:
  TextOption store_, engine_, direct_, granule_;
  Switch keep_, resume_;
};

// The directory of file:DIR. Throws: UsageError.
std::filesystem::path store_directory(const Given& given);
// Whole sectors of 4 KiB. Throws: UsageError.
Index parse_granule(const Given& given);

}  // namespace redblue
