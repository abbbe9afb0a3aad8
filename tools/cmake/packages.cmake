# Debian packages, built by `cpack` in a build tree: redblue, libredblue-dev and libredblue0.1
# (shared libraries). Also redblue-mpi and python3-redblue if they are built. Include it after all
# install rules.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME redblue)
set(CPACK_PACKAGE_VENDOR "the redblue authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "counts the words that attention kernels move")
set(CPACK_PACKAGE_CONTACT "the redblue authors <redblue@redblue.invalid>" CACHE STRING
  "Maintainer of packages, with an address")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

get_cmake_property(rules COMPONENTS)
set(CPACK_COMPONENTS_ALL "")
macro(add_package component name section description)
  if("${component}" IN_LIST rules)  # in quotes, because `libraries` is also a variable
    list(APPEND CPACK_COMPONENTS_ALL ${component})
    string(TOUPPER ${component} part)
    set(CPACK_DEBIAN_${part}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${part}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${part}_DESCRIPTION "${what}\n.\n${description}")
    # Debian's own paths, which `cmake --install` does not use.
    install(FILES ${PROJECT_BINARY_DIR}/debian/copyright DESTINATION share/doc/${name}
      COMPONENT ${component} EXCLUDE_FROM_ALL)
    install(FILES tools/packaging/lintian-overrides DESTINATION share/lintian/overrides
      RENAME ${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endmacro()
set(what "redblue runs attention kernels, forward and backward, in a fast memory of
exactly M words joined to a slow memory by explicit reads and writes, and
counts every word. Beside each count are the closed form, which must agree,
and a proven lower bound.")
add_package(command redblue science
  "This package has the command, its manual pages and completions.")
add_package(development libredblue-dev libdevel
  "This package has libraries, headers, and files of CMake and pkg-config, with
which a program runs these kernels on its own buffers, or counts its own.")
set(version "(= ${PROJECT_VERSION}-1)")
if(BUILD_SHARED_LIBS)
  get_target_property(soname redblue_memsim SOVERSION)
  set(shared libredblue${soname})
  add_package(libraries ${shared} libs
    "This package has the shared libraries that the command, and programs built
with libredblue-dev, load.")
endif()
add_package(mpi redblue-mpi science
  "This package has what redblue becomes as a rank of a job of Open MPI.")
add_package(python python3-redblue python
  "This package has the module redblue of Python.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "git, gnuplot-nox, valgrind")
# Libraries that are loaded at run time: the package of libhwloc.so.15 is libhwloc15.
set(loaded "")
foreach(part HWLOC PAPI)
  if(REDBLUE_WITH_${part})
    string(REPLACE ".so." "" package ${REDBLUE_${part}_FILE})
    list(APPEND loaded ${package})
  endif()
endforeach()
list(JOIN loaded ", " loaded)
foreach(component COMMAND MPI PYTHON)
  set(CPACK_DEBIAN_${component}_PACKAGE_RECOMMENDS "${loaded}")
endforeach()
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "redblue ${version}, openmpi-bin")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
# The module works only with the Python version it was built for.
if(REDBLUE_BUILD_PYTHON)
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(python "python${Python_VERSION_MAJOR}")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "${python} (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}), ${python} (<< ${Python_VERSION_MAJOR}.${next}), ${python}-numpy")
endif()
# Dependencies of a program that links the static libraries.
set(needs libfmt-dev libhwy-dev zlib1g-dev)
if(REDBLUE_WITH_URING)
  list(APPEND needs liburing-dev)
endif()
if(BUILD_SHARED_LIBS)
  list(PREPEND needs "${shared} ${version}")
  # dpkg-shlibdeps finds the libraries in the build tree, because no package owns them yet.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
  set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  foreach(part COMMAND MPI PYTHON)
    list(PREPEND CPACK_DEBIAN_${part}_PACKAGE_DEPENDS "${shared} ${version}")
    list(JOIN CPACK_DEBIAN_${part}_PACKAGE_DEPENDS ", " CPACK_DEBIAN_${part}_PACKAGE_DEPENDS)
  endforeach()
endif()
list(JOIN needs ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)

# The licence in the format of Debian's copyright files: a dot stands for an empty line.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE licence)
if(NOT licence MATCHES "^MIT License\n\nCopyright \\(c\\) ([^\n]+)\n\n(.+)$")
  message(FATAL_ERROR "LICENSE is no MIT licence: say so in tools/cmake/packages.cmake")
endif()
set(holder "${CMAKE_MATCH_1}")
string(STRIP "${CMAKE_MATCH_2}" terms)
string(REGEX REPLACE "\n\n" "\n.\n" terms "${terms}")
string(REPLACE "\n" "\n " terms " ${terms}")
file(WRITE ${PROJECT_BINARY_DIR}/debian/copyright
  "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: redblue

Files: *
Copyright: ${holder}
License: Expat
${terms}
")
install(FILES CHANGELOG.md DESTINATION share/doc/redblue RENAME changelog COMPONENT command
  EXCLUDE_FROM_ALL)

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/tools/packaging/debian.cmake)
include(CPack)
