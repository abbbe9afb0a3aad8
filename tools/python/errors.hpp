#pragma once
// Turns exceptions of C++ into exceptions of the package.

#include <exception>

#include <pybind11/pybind11.h>

namespace redblue {

// Sets Python's error: an exception of the package with the command's message. Requires: Python's
// lock.
void set_error(const std::exception_ptr& failure);

// Calls work() and returns its result. Throws: pybind11::error_already_set for any exception.
template <class Work>
auto saying(const Work& work) {
  try {
    return work();
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (...) {
    set_error(std::current_exception());
    throw pybind11::error_already_set();
  }
}

}  // namespace redblue
