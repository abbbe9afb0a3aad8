#pragma once
// What a gate watches. A subject is a computation on a Machine that has a name and is given sizes:
// redblue's kernels are subjects (runtime/sweep/kernel_subjects.hpp), and so may be any code that
// works on a Machine (tools/gate/own_kernel.hpp makes a command of them). All are values; a
// subject's functions may be called from several threads at once.

#include <functional>
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

// A size, or one of a few words.
using Value = std::variant<Index, std::string>;
std::string to_string(const Value& value);

// What a subject is given, by name: "n=64 m=64 M=1024".
class Arguments {
 public:
  // A size. Throws (both): std::out_of_range for a name that there is not.
  [[nodiscard]] Index operator[](std::string_view name) const;
  [[nodiscard]] const Value& value(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const;
  void set(std::string name, Value value);

  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  friend bool operator==(const Arguments&, const Arguments&) = default;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};
std::string to_string(const Arguments& arguments);

struct Parameter {
  std::string name;
  std::string help;
  std::optional<Value> otherwise = std::nullopt;  // where left out
  std::string same_as = {};  // or the value of a parameter before it; else it must be said
  std::vector<std::string> words = {};  // all that it may be; none: it is a size
};

// The counts of a machine that has done its work. Throws: std::logic_error where tiles are still
// alive, a phase is still open, or two phases have the same path ("a/b", and b within a).
RunCounts final_counts(const Machine& machine);

struct Subject {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;  // M is one of them
  // Throws: FastMemoryTooSmall or FastMemoryOverflow where it does not fit in M.
  std::function<RunCounts(const Arguments&)> run;
  // What run() will count, phase by phase; null where nobody knows. Throws: FastMemoryTooSmall.
  std::function<std::vector<PhaseCost>(const Arguments&)> formula = nullptr;
  // The least M for these arguments, whatever their M is; null where nobody knows.
  std::function<Index(const Arguments&)> least_M = nullptr;
  // The name of an argument that it cannot take, whatever M is: of threads where its work cannot be
  // split; empty where it takes them all. Null: it takes them all.
  std::function<std::string(const Arguments&)> declined = nullptr;
};

// A subject that is one function of a machine of M words and the arguments, of which M is the last.
Subject subject_of(std::string name, std::function<void(Machine&, const Arguments&)> work,
                   const std::vector<std::string>& sizes);

// The arguments in the order of the subject's parameters, with what was left out.
// Throws: std::invalid_argument for one that is unknown, missing or not what it may be.
Arguments complete(const Subject& subject, const Arguments& given);

// Of complete arguments, those that are not what they would be where left out.
Arguments brief(const Subject& subject, const Arguments& complete);

// A formula as a run would count it. Throws: CountOverflow.
RunCounts predicted(const std::vector<PhaseCost>& phases);

}  // namespace redblue
