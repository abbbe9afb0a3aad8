# The source of known_device_files(): the text of each file of a directory. They are compiled in, so
# that the command works wherever it is copied to.
function(add_known_devices target directory)
  file(GLOB files CONFIGURE_DEPENDS ${directory}/*.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(texts "")
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    file(READ ${file} text)
    string(APPEND texts "      {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  set(made ${PROJECT_BINARY_DIR}/generated/runtime/observe/known_device_files.cpp)
  file(CONFIGURE OUTPUT ${made} @ONLY CONTENT [[
// Made by tools/cmake/known_devices.cmake.

#include "runtime/observe/devices.hpp"

namespace redblue {

const std::vector<DeviceFile>& known_device_files() {
  static const std::vector<DeviceFile> files = {
@texts@  };
  return files;
}

}  // namespace redblue
]])
  target_sources(${target} PRIVATE ${made})
endfunction()
