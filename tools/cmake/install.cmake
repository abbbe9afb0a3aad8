# Installs the redblue command and the libraries, with files for find_package and pkg-config. The
# libraries are memsim, store, ranks, kernels and, with the command, runtime; or memsim alone. The
# installation can be moved, because it does not contain its prefix. Components correspond to
# packages (packages.cmake): command, mpi, libraries (if shared), and development for the rest. No
# package has the component explorer.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redblue)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

if(REDBLUE_ONLY_MEMSIM)
  set(rooms memsim)
  set(no_store PATTERN "store" EXCLUDE PATTERN "ranks" EXCLUDE)
else()
  set(rooms memsim kernels)
  # A user's machine finds the linked libraries by name.
  set(find_dependencies "find_dependency(hwy)\nfind_dependency(Threads)")
  set(needed_packages libhwy)
  if(REDBLUE_WITH_URING)
    list(APPEND needed_packages liburing)
    if(NOT BUILD_SHARED_LIBS)
      string(APPEND find_dependencies "\nredblue_find_library(uring)")
    endif()
  endif()
  set(find_runtime_dependencies "find_dependency(fmt)\n  find_dependency(OpenMP)\n  find_dependency(ZLIB)")
endif()
list(TRANSFORM libraries PREPEND redblue_ OUTPUT_VARIABLE targets)
# Libraries look for each other in their own directory.
set_target_properties(${targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${targets} EXPORT redblue_targets
  LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
# Leaves out headers that only the sources of kernels/ use.
install(DIRECTORY ${rooms} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue
  FILES_MATCHING PATTERN "*.hpp" PATTERN "unchecked.hpp" EXCLUDE PATTERN "nearest.hpp" EXCLUDE
  PATTERN "sparse" EXCLUDE PATTERN "parts" EXCLUDE PATTERN "gradients" EXCLUDE
  PATTERN "linear" EXCLUDE PATTERN "nests" EXCLUDE PATTERN "*-inl.hpp" EXCLUDE PATTERN "simd_targets.hpp" EXCLUDE ${no_store})
if(REDBLUE_BUILD_TOOLS)
  install(TARGETS redblue COMPONENT command)
  install(DIRECTORY runtime/run/nests DESTINATION ${CMAKE_INSTALL_DATADIR}/redblue COMPONENT command)
  # The page, if tools/explorer/build has built it.
  install(DIRECTORY ${PROJECT_BINARY_DIR}/../explorer DESTINATION ${CMAKE_INSTALL_DATADIR}/redblue
    COMPONENT explorer OPTIONAL)
  if(REDBLUE_WITH_MPI)
    install(TARGETS redblue_mpi COMPONENT mpi)
  endif()
  include(tools/cmake/manual.cmake)
  install(TARGETS redblue_gate redblue_gate_main EXPORT redblue_targets)
  install(FILES runtime/gate/subject.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/runtime/gate)
  install(FILES tools/gate/own_kernel.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/tools/gate)
  # A separate export: runtime has more dependencies than a user of kernels alone should need.
  install(TARGETS redblue_runtime EXPORT redblue_runtime_targets)
  install(FILES runtime/run/attention.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue)
  install(FILES runtime/system/cache_part.hpp
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/runtime/system)
endif()

# In the source tree headers include each other from its root ("memsim/tile.hpp"). Installed headers
# say <redblue/memsim/tile.hpp>, so that a folder with such a name in a user's project cannot hide
# them.
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
list(REVERSE targets)  # a library comes before its dependencies
list(JOIN targets " " pc_libraries)
# A static library does not contain its dependencies. A shared library needs them only in a static
# link.
list(JOIN needed_packages " " needed_packages)
if(REDBLUE_ONLY_MEMSIM)
  set(pc_needs "")
elseif(BUILD_SHARED_LIBS)
  set(pc_needs "Requires.private: ${needed_packages}\nLibs.private: -pthread")
else()
  set(pc_needs "Requires: ${needed_packages}")
  string(APPEND pc_libraries " -pthread")
endif()
set(pc_name redblue)
configure_file(tools/cmake/redblue.pc.in redblue.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/redblue.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(REDBLUE_BUILD_TOOLS)
  set(pc_libraries "-lredblue_runtime -lredblue_gate -fopenmp")
  set(pc_name redblue-runtime)
  set(pc_needs "Requires: redblue libhwy fmt zlib")
  configure_file(tools/cmake/redblue.pc.in redblue-runtime.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/redblue-runtime.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME Unspecified)  # the default for later install rules
