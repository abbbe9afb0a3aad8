#pragma once
// A subject is a computation on a Machine, with a name and sizes, that a gate or sweep can count.
// redblue's kernels are subjects (runtime/subjects/kernel_subjects.hpp). Any other code that works
// on a Machine can be a subject (tools/gate/own_kernel.hpp turns it into a command). All types are
// values. Several threads may call a subject's functions at once.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/machine.hpp"
#include "memsim/phase.hpp"

namespace redblue {

// A size or a text. Most texts are one of a few words.
using Value = std::variant<Index, std::string>;
std::string to_string(const Value& value);

// The arguments of a subject, by name: "n=64 m=64 M=1024".
class Arguments {
 public:
  // Throws (both): std::out_of_range for an unknown name; operator[] also for an argument that is
  // not a size.
  [[nodiscard]] Index operator[](std::string_view name) const;
  [[nodiscard]] const Value& value(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const;
  void set(std::string name, Value value);

  // The directory of relative file names in the arguments. Empty: the working directory. Comparison
  // ignores it: arguments with different directories can be equal.
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  void set_directory(std::filesystem::path directory) { directory_ = std::move(directory); }

  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  friend bool operator==(const Arguments& a, const Arguments& b) { return a.values_ == b.values_; }

 private:
  std::vector<std::pair<std::string, Value>> values_;
  std::filesystem::path directory_;
};
std::string to_string(const Arguments& arguments);

// Texts by name, written as "A1=random:2 X=identity". A text with blanks stands in quotes. kNone
// means an empty map. Sorted by name, so that equal maps have equal texts.
inline constexpr std::string_view kNone = "none";
using NamedTexts = std::map<std::string, std::string>;
// Throws (both): std::invalid_argument. to_string() throws it for a text that cannot be quoted.
NamedTexts parse_named_texts(std::string_view text);
std::string to_string(const NamedTexts& texts);

struct Parameter {
  std::string name;
  std::string help;
  // The default: a value, or the value of an earlier parameter. Without a default the parameter is
  // required.
  std::optional<Value> otherwise = std::nullopt;
  std::string same_as = {};
  std::vector<std::string> words = {};  // allowed texts; empty: it is a size
  bool is_text = false;                 // any text is allowed
  bool is_named = false;                // the text is a NamedTexts, as parse_named_texts() takes it
  bool is_optional = false;             // if left out, it has no value and no default
  // Names that a NamedTexts may use; empty: any. A pattern skips a subject that lacks a given name.
  std::vector<std::string> names = {};
};

// Returns the counts of a machine after its work. Throws: std::logic_error if tiles are still
// alive, a phase is still open, two phases have the same path ("a/b", and b within a), or a path is
// not UTF-8.
RunCounts final_counts(const Machine& machine);

struct Subject {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;  // include M
  // Runs the work and counts it. Throws: FastMemoryTooSmall or FastMemoryOverflow if the work does
  // not fit in M.
  std::function<RunCounts(const Arguments&)> run;
  // Predicts the counts of run() by a formula, phase by phase. Null: no formula. Throws:
  // FastMemoryTooSmall.
  std::function<std::vector<PhaseCost>(const Arguments&)> formula = nullptr;
  // True if run() itself refuses counts that contradict the formula.
  bool compares_formula = false;
  // The same for each inner level of fast memory, innermost first. Null: no inner levels.
  std::function<std::vector<std::vector<PhaseCost>>(const Arguments&)> inner_formulas = nullptr;
  // True if the formula's peaks are upper bounds, so that a run's peaks may be smaller. Null: peaks
  // are exact.
  std::function<bool(const Arguments&)> peaks_are_bounds = nullptr;
  // The least M for these arguments; ignores their own M. Null: unknown.
  std::function<Index(const Arguments&)> least_M = nullptr;
  // The lower bound for algorithms of the subject's class. Null or empty: unknown.
  std::function<std::optional<Index>(const Arguments&)> bound = nullptr;
  // Throws: std::invalid_argument for arguments that do not fit together. Null: all fit.
  std::function<void(const Arguments&)> check = nullptr;
  // Fingerprints of the files that arguments name, by argument, because files may change. Null: no
  // argument names a file.
  std::function<std::map<std::string, std::string>(const Arguments&)> fingerprints = nullptr;
  // Returns the name of an argument that the subject does not support at any M, such as threads if
  // its work does not split. Returns an empty text if it supports all. Null: it supports all.
  std::function<std::string(const Arguments&)> declined = nullptr;
  // The words of each level of a device, the innermost first, as these arguments divide them; null:
  // the subject knows no devices. Throws: UsageError.
  std::function<std::vector<Index>(const std::string& device, const Arguments&)> device_levels =
      nullptr;
  // Arguments that select this subject. If a pattern also matches other subjects, it means this
  // subject only together with such an argument. Empty: always.
  std::vector<std::string> meant_with = {};
};

// Makes a subject from a function that works on a machine of M words. Its parameters are `sizes`,
// then M.
Subject subject_of(std::string name, std::function<void(Machine&, const Arguments&)> work,
                   const std::vector<std::string>& sizes);

// Returns the arguments in the order of the subject's parameters, with defaults filled in. Throws:
// std::invalid_argument for an argument that is unknown, missing or has a wrong value.
Arguments complete(const Subject& subject, const Arguments& given);

// Returns the complete arguments without defaults.
Arguments brief(const Subject& subject, const Arguments& complete);

// The argument that lists the words of inner levels of fast memory, innermost first, if a subject
// takes several levels: "8192,65536", all below M.
inline constexpr std::string_view kInner = "inner";
// In an entry of a suite: a device by its name, for M and the levels below it.
inline constexpr std::string_view kDevice = "device";

// Converts the phases of a formula, and of inner levels, to counts without operations. Throws:
// CountOverflow.
RunCounts predicted(const std::vector<PhaseCost>& phases,
                    const std::vector<std::vector<PhaseCost>>& inner = {});

}  // namespace redblue
