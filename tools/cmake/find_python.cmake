# Finds what the Python package needs, where REDBLUE_BUILD_PYTHON asks for it.

if(NOT REDBLUE_BUILD_PYTHON)
  return()
endif()
# Debian's, whose packages tools/setup installs; a wheel names the one that builds it.
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
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the module has the libraries in it
# Else each function could be another's when the module is loaded, and g++ inlines none.
add_compile_options(-fno-semantic-interposition)
