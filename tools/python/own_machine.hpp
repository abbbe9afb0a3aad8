#pragma once
// Machines for kernels that are written in Python: tiles are NumPy arrays.

#include <pybind11/pybind11.h>

namespace redblue {

// Adds the classes Machine, SlowMatrix and Block. redblue/machine.py defines their Python
// interface.
void add_machine(pybind11::module_& module);

}  // namespace redblue
