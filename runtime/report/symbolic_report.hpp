#pragma once
// The report of `redblue count --symbolic`: the closed form of each phase as a formula.

#include <optional>
#include <string>

#include "runtime/report/notation.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/description.hpp"
#include "runtime/theory/symbolic.hpp"

namespace redblue {

struct SymbolicReport {
  Plan plan;  // of the case
  SymbolicFormula formula;
  std::optional<FastMemoryOrigin> M_from = {};
  std::optional<Regime> regime = {};  // of the plan; nothing where it has no blocks
  bool is_example = false;  // redblue chose the plan's sizes, for a regime that was asked for
};

// Of what `counted` counts. Throws: UsageError where that is more than one kernel in one fast
// memory, or depends on more than lengths.
SymbolicReport report_symbolic(const Report& counted);

Description describe(const SymbolicReport& report);
// Equations of amsmath; and a program for SymPy.
std::string to_latex(const SymbolicReport& report);
std::string to_sympy(const SymbolicReport& report);

}  // namespace redblue
