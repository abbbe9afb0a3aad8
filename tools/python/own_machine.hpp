#pragma once
// Machines for kernels that are written in Python: tiles are NumPy arrays.

#include <pybind11/pybind11.h>

#include "memsim/words.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

// Adds the classes Machine, SlowMatrix and Block. redblue/machine.py defines their Python
// interface.
void add_machine(pybind11::module_& module);

// Returns the words of a part of a cache. The machine is read in the first call, and again when
// hwloc's variables change. Requires: Python's lock.
Index words_of_cache(const CachePart& part, Index threads);

}  // namespace redblue
