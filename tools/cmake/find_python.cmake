# Finds the dependencies of the Python package, if REDBLUE_BUILD_PYTHON is on.

if(NOT REDBLUE_BUILD_PYTHON)
  return()
endif()
# By default Debian's Python, because tools/setup installs its packages. The build of a wheel names
# its own.
find_program(Python_EXECUTABLE python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_package(Python QUIET COMPONENTS Interpreter Development.Module)
set(PYBIND11_FINDPYTHON ON)
if(Python_FOUND)
  find_package(pybind11 CONFIG QUIET)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy"
    RESULT_VARIABLE no_numpy OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT pybind11_FOUND OR no_numpy)
  message(FATAL_ERROR "pybind11, NumPy or the headers of Python are missing: install the packages "
    "pybind11-dev, python3-numpy and python3-dev (tools/setup --python does), or configure with "
    "-DREDBLUE_BUILD_PYTHON=OFF")
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the module contains the libraries
# Without the flag the loader could replace each function, and g++ would inline none.
add_compile_options(-fno-semantic-interposition)
