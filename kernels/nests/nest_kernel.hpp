#pragma once
// Nests as kernels. A nest that is loaded can be planned, counted and run by its name, as any
// registered kernel. It computes no values.

#include <memory>
#include <string>
#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/nests/formula.hpp"
#include "kernels/nests/text_nest.hpp"

namespace redblue {

// Returns the kernel of a nest. Later calls with the same name and text return the same kernel.
// From now on find_kernel() and parse_kernel_name() know the name. Throws: NestError, also for
// operands or results that the problem does not have.
const Kernel& load_nest(const std::string& name, std::string_view text, std::string_view file);

// Returns the formula of a loaded nest for the sizes of a plan. Throws: NestError.
NestFormula formula_of(const Kernel& loaded, const Plan& plan);

}  // namespace redblue
