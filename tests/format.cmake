# Every source must be as clang-format writes it.
if(NOT CLANG_FORMAT)
  message(FATAL_ERROR "clang-format was not found when configuring; tools/setup installs it")
endif()
set(sources)
foreach(dir runtime kernels memsim tools tests bench)
  file(GLOB_RECURSE found ${SOURCE_DIR}/${dir}/*.cpp ${SOURCE_DIR}/${dir}/*.hpp)
  list(APPEND sources ${found})
endforeach()
list(LENGTH sources count)
message(STATUS "${count} files, ${CLANG_FORMAT}")
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror --style=file ${sources}
  COMMAND_ERROR_IS_FATAL ANY)
