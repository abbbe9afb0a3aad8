# `cmake --install`: the redblue command, and the libraries (memsim, store, ranks, kernels and, with the command,
# runtime; or memsim alone) with what find_package and pkg-config need. The result can be moved: nothing in it names its prefix.
# Components are those of packages (packages.cmake): command, mpi, and development for all else.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redblue)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

if(REDBLUE_ONLY_MEMSIM)
  set(rooms memsim)
  set(no_store PATTERN "store" EXCLUDE PATTERN "ranks" EXCLUDE)
else()
  set(rooms memsim kernels)
  set(find_dependencies "find_dependency(hwy)\nfind_dependency(Threads)")
  set(static_needs " -lhwy -pthread")
  if(REDBLUE_WITH_URING)
    string(APPEND static_needs " -luring")
  endif()
endif()
list(TRANSFORM libraries PREPEND redblue_ OUTPUT_VARIABLE targets)
# Libraries find each other beside themselves.
set_target_properties(${targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${targets} EXPORT redblue_targets
  LIBRARY COMPONENT command NAMELINK_COMPONENT development)
# Left out: headers for the sources of kernels/ alone.
install(DIRECTORY ${rooms} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue
  FILES_MATCHING PATTERN "*.hpp" PATTERN "unchecked.hpp" EXCLUDE
  PATTERN "sparse" EXCLUDE PATTERN "*-inl.hpp" EXCLUDE PATTERN "simd_targets.hpp" EXCLUDE ${no_store})
if(REDBLUE_BUILD_TOOLS)
  install(TARGETS redblue COMPONENT command)
  if(REDBLUE_WITH_MPI)
    install(TARGETS redblue_mpi COMPONENT mpi)
  endif()
  include(tools/cmake/manual.cmake)
  install(TARGETS redblue_gate redblue_gate_main EXPORT redblue_targets)
  install(FILES runtime/gate/subject.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/runtime/gate)
  install(FILES tools/gate/own_kernel.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/tools/gate)
  # One call, with its own export: it needs more than whoever wants kernels alone has.
  install(TARGETS redblue_runtime EXPORT redblue_runtime_targets)
  install(FILES runtime/run/attention.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue)
  install(FILES runtime/system/cache_part.hpp
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/runtime/system)
endif()

# In the tree headers include each other from its root ("memsim/tile.hpp"). Installed they say
# <redblue/memsim/tile.hpp>, so that a folder of that name in a user's project hides none of them.
string(CONFIGURE [[
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX NORMALIZE OUTPUT_VARIABLE directory)
  cmake_path(APPEND directory "@CMAKE_INSTALL_INCLUDEDIR@" redblue)
  file(GLOB_RECURSE headers "$ENV{DESTDIR}${directory}/*.hpp")
  foreach(header IN LISTS headers)
    file(READ "${header}" text)
    string(REGEX REPLACE "#include \"([^\"\n]+)\"" "#include <redblue/\\1>" text "${text}")
    file(WRITE "${header}" "${text}")
  endforeach()
]] say_redblue @ONLY)
install(CODE "${say_redblue}")

install(EXPORT redblue_targets NAMESPACE redblue:: FILE redblueTargets.cmake
  DESTINATION ${package_dir})
if(REDBLUE_BUILD_TOOLS)
  install(EXPORT redblue_runtime_targets NAMESPACE redblue:: FILE redblueRuntimeTargets.cmake
    DESTINATION ${package_dir})
endif()
configure_package_config_file(tools/cmake/redblueConfig.cmake.in redblueConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(redblueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/redblueConfig.cmake
  ${PROJECT_BINARY_DIR}/redblueConfigVersion.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
list(TRANSFORM targets PREPEND -l)
list(REVERSE targets)  # a library comes before those that it needs
list(JOIN targets " " pc_libraries)
# A static library brings along nothing of what it needs itself.
get_target_property(type redblue_memsim TYPE)
if(type STREQUAL "STATIC_LIBRARY")
  string(APPEND pc_libraries "${static_needs}")
endif()
set(pc_name redblue)
configure_file(tools/cmake/redblue.pc.in redblue.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/redblue.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(REDBLUE_BUILD_TOOLS)
  set(pc_libraries "-lredblue_runtime -lredblue_gate -lfmt -lhwy -lz -fopenmp")
  foreach(part HWLOC PAPI)
    if(REDBLUE_WITH_${part})
      string(TOLOWER " -l${part}" library)
      string(APPEND pc_libraries ${library})
    endif()
  endforeach()
  set(pc_name redblue-runtime)
  set(pc_requires "Requires: redblue\n")
  configure_file(tools/cmake/redblue.pc.in redblue-runtime.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/redblue-runtime.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME Unspecified)  # of whoever comes next
