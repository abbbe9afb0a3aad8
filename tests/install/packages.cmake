# Makes the Debian packages of a built tree, checks them with lintian, unpacks them, and runs the
# unpacked command. tools/packaging has the overrides of lintian's tags, with their reasons.
#   BUILD_DIR, WORK_DIR, VERSION
cmake_minimum_required(VERSION 3.25)
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)

file(REMOVE_RECURSE ${WORK_DIR})
cmake_path(GET CMAKE_COMMAND PARENT_PATH programs)
execute_process(COMMAND ${programs}/cpack --config ${BUILD_DIR}/CPackConfig.cmake -B ${WORK_DIR}
  -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip  # faster
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB packages ${WORK_DIR}/*.deb)
set(names "")
execute_process(COMMAND /usr/bin/python3 -c "import sys
minor = sys.version_info.minor
print(f'python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})', end='')"
  OUTPUT_VARIABLE python COMMAND_ERROR_IS_FATAL ANY)
foreach(package IN LISTS packages)
  execute_process(COMMAND dpkg-deb --field ${package} Package Version Depends OUTPUT_VARIABLE fields
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT fields MATCHES "Package: ([^\n]+)\nVersion: ${VERSION}-1\n")
    message(FATAL_ERROR "${package} is of another version: ${fields}")
  endif()
  set(name ${CMAKE_MATCH_1})
  list(APPEND names ${name})
  # The libraries of the command say which system packages a package needs.
  if(name STREQUAL "redblue" AND NOT fields MATCHES "Depends: [^\n]*libfmt[^\n]*libhwy")
    message(FATAL_ERROR "no dependencies: ${fields}")
  endif()
  # Only the minor version of Python that a module was built for can load it.
  string(FIND "${fields}" "${python}" at)
  if(name STREQUAL "python3-redblue" AND at EQUAL -1)
    message(FATAL_ERROR "not '${python}': ${fields}")
  endif()
  execute_process(COMMAND dpkg-deb --extract ${package} ${WORK_DIR}/root COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(name redblue libredblue-dev)
  if(NOT name IN_LIST names)
    message(FATAL_ERROR "no ${name} among ${names}")
  endif()
endforeach()

# Below /usr, libraries go to Debian's own directory. This tree may have another prefix.
set(elsewhere "")
if(EXISTS ${WORK_DIR}/root/usr/lib/pkgconfig)
  set(elsewhere --suppress-tags pkg-config-unavailable-for-cross-compilation)
endif()
execute_process(COMMAND lintian --fail-on error,warning --allow-root ${elsewhere} ${packages}
  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "lintian: ${said}")
endif()

set(root ${WORK_DIR}/root/usr)
foreach(file
    share/man/man1/redblue.1.gz share/man/man1/redblue-run.1.gz
    share/bash-completion/completions/redblue share/zsh/vendor-completions/_redblue
    share/fish/vendor_completions.d/redblue.fish
    share/doc/redblue/copyright share/doc/redblue/changelog.gz
    share/doc/redblue/changelog.Debian.gz share/doc/libredblue-dev/changelog.Debian.gz
    include/redblue/attention.hpp include/redblue/memsim/machine.hpp)
  if(NOT EXISTS ${root}/${file})
    message(FATAL_ERROR "the packages have no ${file}")
  endif()
endforeach()
execute_process(COMMAND ${root}/bin/redblue --version OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said STREQUAL "redblue ${VERSION}\n")
  message(FATAL_ERROR "the command out of the package says ${said}")
endif()
