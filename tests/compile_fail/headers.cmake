# Precompiles the headers of all cases: what a case includes itself is in them already.
include(${CMAKE_CURRENT_LIST_DIR}/flags.cmake)
file(WRITE ${HEADERS} "#include \"kernels/arithmetic/arithmetic.hpp\"\n#include \"memsim/machine.hpp\"\n")
execute_process(COMMAND ${COMPILER} ${flags} -x c++-header ${HEADERS} -o ${HEADERS}.gch
  COMMAND_ERROR_IS_FATAL ANY)
