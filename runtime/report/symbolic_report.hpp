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
  Plan plan;  // the plan that the formulas describe
  NestFormula formula;
  std::optional<FastMemoryOrigin> M_from = {};
  std::optional<Regime> regime = {};  // regime of the plan; not set if it has no blocks
  bool is_example = false;            // redblue chose sizes for the regime that the user named
};

// Returns the formulas for a counted kernel. Throws: UsageError if `counted` has several kernels,
// several levels or ranks, or if its words depend on more than lengths.
SymbolicReport report_symbolic(const Report& counted);

Description describe(const SymbolicReport& report);
// Return equations for amsmath, and a program for SymPy.
std::string to_latex(const SymbolicReport& report);
std::string to_sympy(const SymbolicReport& report);

}  // namespace redblue
