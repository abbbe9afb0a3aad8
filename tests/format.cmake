# Every source must be as clang-format writes it.
set(sources)
foreach(dir runtime kernels memsim tools tests bench)
  file(GLOB_RECURSE found ${SOURCE_DIR}/${dir}/*.cpp ${SOURCE_DIR}/${dir}/*.hpp)
  list(APPEND sources ${found})
endforeach()
list(LENGTH sources count)
message(STATUS "${count} files, clang-format-14")
execute_process(COMMAND clang-format-14 --dry-run -Werror --style=file ${sources}
  COMMAND_ERROR_IS_FATAL ANY)
