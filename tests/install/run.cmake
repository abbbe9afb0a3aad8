# Installs into an empty prefix, moves it, and builds and runs a user's project against it,
# once through find_package and once through pkg-config.
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)
macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

file(REMOVE_RECURSE ${WORK_DIR})
set(prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staging)
file(RENAME ${WORK_DIR}/staging ${prefix})
if(EXISTS ${prefix}/include/redblue/runtime)
  message(FATAL_ERROR "runtime is not for export")
endif()

if(WITH_TOOLS)
  run(${prefix}/bin/redblue --version)
endif()

set(source ${CMAKE_CURRENT_LIST_DIR}/consumer)
run(${CMAKE_COMMAND} -S ${source} -B ${WORK_DIR}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${prefix}
  -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_BUILD_TYPE=${BUILD_TYPE}
  -D "CMAKE_CXX_FLAGS=${FLAGS}"
  -D "CMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)

# Only this prefix: a redblue elsewhere on the machine must not be found instead.
set(ENV{PKG_CONFIG_LIBDIR} ${prefix}/${LIBDIR}/pkgconfig)
unset(ENV{PKG_CONFIG_PATH})
execute_process(COMMAND pkg-config --cflags --libs redblue
  OUTPUT_VARIABLE package_flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${TYPE_FLAGS} ${LINK_FLAGS}")
separate_arguments(package_flags UNIX_COMMAND "${package_flags}")
run(${COMPILER} -std=c++20 ${flags} ${source}/main.cpp -o ${WORK_DIR}/consumer
  ${package_flags} -Wl,-rpath,${prefix}/${LIBDIR})
run(${WORK_DIR}/consumer)
