# Configures redblue with shared libraries, without a build. The package of the libraries has the name of
# their soname, and the command's package depends on it. pkg-config lists what the libraries need only for
# a static link.
#   SOURCE_DIR, WORK_DIR, COMPILER, GENERATOR, VERSION
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK_DIR})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR} -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${COMPILER} -D BUILD_SHARED_LIBS=ON -D REDBLUE_BUILD_TESTS=OFF
    -D REDBLUE_BUILD_BENCH=OFF
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

include(${WORK_DIR}/CPackConfig.cmake)
function(expect what value pattern)
  if(NOT value MATCHES "${pattern}")
    message(FATAL_ERROR "${what} is '${value}', and not '${pattern}'")
  endif()
endfunction()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" soname ${VERSION})
expect(components "${CPACK_COMPONENTS_ALL}" "libraries")
expect(package "${CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME}" "^libredblue${soname}$")
foreach(part COMMAND DEVELOPMENT)
  expect(${part} "${CPACK_DEBIAN_${part}_PACKAGE_DEPENDS}" "libredblue${soname} \\(= ${VERSION}-1\\)")
endforeach()
file(READ ${WORK_DIR}/redblue.pc pc)
expect(redblue.pc "${pc}" "\nRequires.private: libhwy liburing\nLibs.private: -pthread\n")
expect(redblue.pc "${pc}" "\nLibs: -L[^ ]+( -lredblue_[a-z]+)+\n")
