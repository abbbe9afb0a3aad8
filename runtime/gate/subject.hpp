#pragma once
// The subjects of a gate. A subject is a computation on a Machine with a name and sizes. redblue's
// kernels are subjects (runtime/subjects/kernel_subjects.hpp), and any code that works on a Machine
// may be one (tools/gate/own_kernel.hpp makes a command of such code). All types are values. A
// subject's functions may be called from several threads at once.

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

// A size, or a text: one of a few words, mostly.
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

  // The directory to which names of files in them are relative; empty: the working directory. Where
  // it is, is not what they are: equal arguments may differ in it.
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

// Some texts by their names: "A1=random:2 X=identity", a text with blanks between quotes; kNone of
// none. In the order of names, so that equal ones have equal texts.
inline constexpr std::string_view kNone = "none";
using NamedTexts = std::map<std::string, std::string>;
// Throws (both): std::invalid_argument; of texts for one that no quotes can hold.
NamedTexts parse_named_texts(std::string_view text);
std::string to_string(const NamedTexts& texts);

struct Parameter {
  std::string name;
  std::string help;
  // The default: a value, or else the value of a parameter before it. Without both it is required.
  std::optional<Value> otherwise = std::nullopt;
  std::string same_as = {};
  std::vector<std::string> words = {};  // the values that it may have; empty: it is a size
  bool is_text = false;                 // it may have any text
  bool is_named = false;                // the text is one of named_texts()
  bool is_optional = false;             // left out, it is not there: it has no default
  // The names that these texts may have; empty: any. A pattern leaves out a subject that lacks one.
  std::vector<std::string> names = {};
};

// The counts of a machine after its work. Throws: std::logic_error where tiles are still alive, a
// phase is still open, two phases have the same path ("a/b", and b within a), or a path is not
// UTF-8.
RunCounts final_counts(const Machine& machine);

struct Subject {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;  // M is one of them
  // Throws: FastMemoryTooSmall or FastMemoryOverflow where the work does not fit in M.
  std::function<RunCounts(const Arguments&)> run;
  // The counts of run(), phase by phase, by a formula; null where there is none. Throws:
  // FastMemoryTooSmall.
  std::function<std::vector<PhaseCost>(const Arguments&)> formula = nullptr;
  // The same of each inner level of fast memory, from the innermost out; null: there are none.
  std::function<std::vector<std::vector<PhaseCost>>(const Arguments&)> inner_formulas = nullptr;
  // Whether the formula's peaks are the most that may live, and a run's may be smaller; null: they
  // are the run's.
  std::function<bool(const Arguments&)> peaks_are_bounds = nullptr;
  // The least M for these arguments, whatever their M is; null where it is unknown.
  std::function<Index(const Arguments&)> least_M = nullptr;
  // The words that any algorithm of its kind moves at least; null, or nothing: none is known.
  std::function<std::optional<Index>(const Arguments&)> bound = nullptr;
  // Throws: std::invalid_argument for arguments that make no sense together; null: all do.
  std::function<void(const Arguments&)> check = nullptr;
  // Of what arguments say that a file may say otherwise another day, by their names; null: none
  // does.
  std::function<std::map<std::string, std::string>(const Arguments&)> fingerprints = nullptr;
  // The name of an argument that the subject cannot take with any M, such as threads where its work
  // cannot be split; empty where it takes all. Null: it takes all arguments.
  std::function<std::string(const Arguments&)> declined = nullptr;
  // The words of each level of a device, the innermost first, as these arguments divide them; null:
  // the subject knows no devices. Throws: UsageError.
  std::function<std::vector<Index>(const std::string& device, const Arguments&)> device_levels =
      nullptr;
  // A pattern that other subjects match, too, means this one only with one of these arguments;
  // empty: always.
  std::vector<std::string> meant_with = {};
};

// A subject whose run is one function of a machine of M words and the arguments. Its parameters are
// `sizes` and then M.
Subject subject_of(std::string name, std::function<void(Machine&, const Arguments&)> work,
                   const std::vector<std::string>& sizes);

// The arguments in the order of the subject's parameters, with defaults filled in. Throws:
// std::invalid_argument for an argument that is unknown, missing or of a wrong value.
Arguments complete(const Subject& subject, const Arguments& given);

// The complete arguments without those that have their defaults.
Arguments brief(const Subject& subject, const Arguments& complete);

// The argument that names the words of inner levels of fast memory, from the innermost out, where a
// subject takes several: "8192,65536" below M.
inline constexpr std::string_view kInner = "inner";
// In an entry of a suite: a device by its name, for M and the levels below it.
inline constexpr std::string_view kDevice = "device";

// The counts of a run by its formula, without operations, and by those of inner levels. Throws:
// CountOverflow.
RunCounts predicted(const std::vector<PhaseCost>& phases,
                    const std::vector<std::vector<PhaseCost>>& inner = {});

}  // namespace redblue
