# Precompiles the headers of all cases, so that a case's own #include costs no time.
include(${CMAKE_CURRENT_LIST_DIR}/flags.cmake)
file(WRITE ${HEADERS} "#include \"kernels/arithmetic/arithmetic.hpp\"\n#include \"memsim/machine.hpp\"\n")
execute_process(COMMAND ${COMPILER} ${flags} -x c++-header ${HEADERS} -o ${HEADERS}.gch
  COMMAND_ERROR_IS_FATAL ANY)
