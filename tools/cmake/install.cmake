# `cmake --install`: the redblue command, and memsim, store and kernels with what find_package and
# pkg-config need. The result can be moved: nothing in it names its prefix.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redblue)

# Libraries find each other beside themselves.
set_target_properties(redblue_kernels redblue_store PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS redblue_memsim redblue_store redblue_kernels EXPORT redblue_targets)
# Left out: what the sources of kernels/ alone can use.
install(DIRECTORY memsim kernels DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue
  FILES_MATCHING PATTERN "*.hpp" PATTERN "unchecked.hpp" EXCLUDE
  PATTERN "*-inl.hpp" EXCLUDE PATTERN "simd_targets.hpp" EXCLUDE)
if(REDBLUE_BUILD_TOOLS)
  install(TARGETS redblue)
  install(TARGETS redblue_gate redblue_gate_main EXPORT redblue_targets)
  install(FILES runtime/gate/subject.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/runtime/gate)
  install(FILES tools/gate/own_kernel.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redblue/tools/gate)
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
configure_package_config_file(tools/cmake/redblueConfig.cmake.in redblueConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(redblueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/redblueConfig.cmake
  ${PROJECT_BINARY_DIR}/redblueConfigVersion.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# A static library brings along nothing of what it needs itself.
get_target_property(kernels_type redblue_kernels TYPE)
if(kernels_type STREQUAL "STATIC_LIBRARY")
  set(pc_static_needs " -lhwy -pthread")
  if(REDBLUE_WITH_URING)
    string(APPEND pc_static_needs " -luring")
  endif()
endif()
configure_file(tools/cmake/redblue.pc.in redblue.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/redblue.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
