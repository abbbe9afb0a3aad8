# Configures, builds and installs memsim alone, with nothing but a compiler: no package, header or
# library is found. Then builds a user's kernel against it and counts its words.
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)
macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

file(REMOVE_RECURSE ${WORK_DIR})
set(nothing_else
  -D CMAKE_FIND_ROOT_PATH=${WORK_DIR}/empty
  -D CMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY
  -D CMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
  -D CMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY
  -D CMAKE_DISABLE_FIND_PACKAGE_Threads=ON)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} ${nothing_else}
  -D CMAKE_CXX_COMPILER=${COMPILER}
  -D "CMAKE_CXX_FLAGS=${FLAGS}"
  -D "CMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS}")

execute_process(COMMAND ${configure} -D CMAKE_DISABLE_FIND_PACKAGE_Threads=OFF
    -S ${SOURCE_DIR} -B ${WORK_DIR}/build
  OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE code)
if(code EQUAL 0)
  message(FATAL_ERROR "all of redblue is configured: what it needs is not hidden")
endif()
run(${configure} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -D REDBLUE_ONLY_MEMSIM=ON)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
set(prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --install ${WORK_DIR}/build --prefix ${prefix})
file(GLOB_RECURSE others ${prefix}/include/redblue/*.hpp)
list(FILTER others EXCLUDE REGEX "/redblue/memsim/[a-z0-9_]+\\.hpp$")
if(others)
  message(FATAL_ERROR "not of memsim: ${others}")
endif()

run(${configure} -S ${CMAKE_CURRENT_LIST_DIR}/transpose -B ${WORK_DIR}/user
  -D redblue_DIR=${prefix}/${LIBDIR}/cmake/redblue)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/user)
run(${WORK_DIR}/user/transpose)
