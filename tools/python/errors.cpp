#include "tools/python/errors.hpp"

#include <optional>
#include <string>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"
#include "tools/cli/frame.hpp"

namespace py = pybind11;

namespace redblue {

void set_error(const std::exception_ptr& failure) {
  const char* type = "Error";
  std::optional<Index> least_M;
  std::string what;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    const Failure said = current_failure();
    what = said.what;
    if (const auto* small = dynamic_cast<const FastMemoryTooSmall*>(&error)) {
      type = "FastMemoryTooSmall";
      least_M = small->least_M;
    } else if (dynamic_cast<const FastMemoryOverflow*>(&error) != nullptr) {
      type = "FastMemoryTooSmall";
    } else if (dynamic_cast<const InputError*>(&error) != nullptr) {
      type = "InputError";
    } else if (said.code == 2) {
      type = "UsageError";
    }
  } catch (...) {
    what = current_failure().what;
  }
  const py::object package = py::module_::import("redblue");
  const py::object error = package.attr(type)(package.attr("_in_python")(printable(what)));
  if (least_M) {
    error.attr("least_M") = *least_M;
  }
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
}

}  // namespace redblue
