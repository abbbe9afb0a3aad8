# Generates the source of a function that returns the name and text of each JSON file and each nest
# of a directory and its subdirectories. A header declares the function. The files are compiled in, so that the command works
# wherever it is copied.
function(add_known_files target directory header function)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${directory}/*.json ${directory}/*.nest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(texts "")
  foreach(file IN LISTS files)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${directory} OUTPUT_VARIABLE name)
    file(READ ${file} text)
    string(APPEND texts "      {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  set(made ${PROJECT_BINARY_DIR}/generated/${function}.cpp)
  file(CONFIGURE OUTPUT ${made} @ONLY CONTENT [[
// Made by tools/cmake/known_files.cmake.

#include "@header@"

namespace redblue {

const std::vector<KnownFile>& @function@() {
  static const std::vector<KnownFile> files = {
@texts@  };
  return files;
}

}  // namespace redblue
]])
  target_sources(${target} PRIVATE ${made})
endfunction()
