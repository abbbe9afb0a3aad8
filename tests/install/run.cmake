# Installs into an empty prefix, moves the prefix, and builds and runs users' projects against it, through
# find_package and through pkg-config. The projects have folders with the names of redblue's folders, and
# in them a file with the name of each redblue header. The compiler must not take these for redblue's.
set(CMAKE_EXECUTE_PROCESS_COMMAND_ECHO STDOUT)
macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

file(REMOVE_RECURSE ${WORK_DIR})
set(prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/staging)
file(RENAME ${WORK_DIR}/staging ${prefix})
file(GLOB_RECURSE exported RELATIVE ${prefix}/include/redblue
  ${prefix}/include/redblue/runtime/* ${prefix}/include/redblue/tools/*)
set(for_export "")
if(WITH_TOOLS)
  set(for_export runtime/gate/subject.hpp runtime/system/cache_part.hpp tools/gate/own_kernel.hpp)
endif()
if(NOT "${exported}" STREQUAL "${for_export}")
  message(FATAL_ERROR "not for export: ${exported}")
endif()

if(WITH_TOOLS)
  run(${prefix}/bin/redblue --version)

  # The explorer's page is installed if it was built. The command finds it there.
  set(page ${prefix}/share/redblue/explorer)
  if(EXISTS ${BUILD_DIR}/../explorer)
    run(diff -r ${BUILD_DIR}/../explorer ${page})
    file(REMOVE_RECURSE ${page})
  endif()
  foreach(code 1 124)  # without a page, and ended by timeout
    execute_process(COMMAND timeout 2 ${prefix}/bin/redblue explore --no-open
      OUTPUT_VARIABLE address ERROR_VARIABLE said RESULT_VARIABLE ended)
    set(expected_1 "^;redblue: the explorer's page is not there: run tools/setup --explorer[^\n]*\n$")
    set(expected_124 "^http://127.0.0.1:[0-9]+/\n;")
    if(NOT ended EQUAL code OR NOT "${address};${said}" MATCHES "${expected_${code}}")
      message(FATAL_ERROR "explore: exit ${ended}: ${address}${said}")
    endif()
    file(WRITE ${page}/index.html "page")
  endforeach()
endif()

# Another machine has these libraries in other places, so the files that find redblue name them without a path.
file(GLOB finders ${prefix}/${LIBDIR}/cmake/redblue/*.cmake ${prefix}/${LIBDIR}/pkgconfig/*.pc)
foreach(finder IN LISTS finders)
  file(READ ${finder} text)
  if(text MATCHES "[\"; =:>](/[a-zA-Z]+/[^\";\n]*)")
    message(FATAL_ERROR "${finder} has a path of this machine: ${CMAKE_MATCH_1}")
  endif()
endforeach()

file(GLOB_RECURSE headers RELATIVE ${prefix}/include/redblue ${prefix}/include/redblue/*.hpp)
set(all "")
foreach(header IN LISTS headers)
  string(APPEND all "#include <redblue/${header}>\n")
  file(STRINGS ${prefix}/include/redblue/${header} quoted REGEX "#include \"")
  if(quoted)
    message(FATAL_ERROR "${header} may find a file of a user's: ${quoted}")
  endif()
endforeach()
# The user's project, with files that could be mistaken for redblue's.
function(copy_user project)
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/${project} DESTINATION ${WORK_DIR}/user)
  foreach(header IN LISTS headers)
    file(WRITE ${WORK_DIR}/user/${project}/${header} "#error ${header} of the user's own\n")
  endforeach()
endfunction()
function(build_user source build type)
  run(${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=${type}
    -D "CMAKE_CXX_FLAGS=${FLAGS}"
    -D "CMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS}")
  run(${CMAKE_COMMAND} --build ${build})
endfunction()
copy_user(consumer)
set(source ${WORK_DIR}/user/consumer)
foreach(type Debug Release)
  build_user(${source} ${WORK_DIR}/${type} ${type})
  run(${WORK_DIR}/${type}/consumer)
endforeach()

# One call on a user's buffers: the first program of the README.
if(WITH_TOOLS)
  copy_user(attention)
  set(one_call ${WORK_DIR}/user/attention)
  file(READ ${one_call}/attention.cpp program)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/../../README.md readme)
  string(FIND "${readme}" "```cpp\n${program}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md shows another program than tests/install/attention/attention.cpp")
  endif()
  build_user(${one_call} ${WORK_DIR}/attention ${BUILD_TYPE})
  execute_process(COMMAND ${WORK_DIR}/attention/attention OUTPUT_VARIABLE said
    COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${readme}" "```text\n${said}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not show what its first program prints: ${said}")
  endif()
endif()

# The program that docs/gate.md shows as a whole one.
if(WITH_TOOLS)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/../../docs/gate.md page)
  foreach(language cpp cmake)
    if(NOT page MATCHES "```${language}\n([^`]*)```")
      message(FATAL_ERROR "docs/gate.md shows no program")
    endif()
    set(shown_${language} "${CMAKE_MATCH_1}")
  endforeach()
  file(WRITE ${WORK_DIR}/user/shown/transpose.cpp "${shown_cpp}")
  file(WRITE ${WORK_DIR}/user/shown/CMakeLists.txt "${shown_cmake}")
  build_user(${WORK_DIR}/user/shown ${WORK_DIR}/shown ${BUILD_TYPE})
  run(${WORK_DIR}/shown/transpose run transpose/blocks --n 50 --m 37 --side 8 --M 128)
endif()

# A user's kernel behind the gate: recorded, checked against its baseline, swept and traced. Then it reads one word more.
if(WITH_TOOLS)
  copy_user(stencil)
  set(stencil ${WORK_DIR}/user/stencil)
  build_user(${stencil} ${WORK_DIR}/stencil ${BUILD_TYPE})
  set(ours ${WORK_DIR}/stencil/stencil)
  run(${ours} list)
  run(${ours} run stencil/strips --n 97 --m 100 --M 64)
  run(${ours} record ${stencil}/suite.json -o ${WORK_DIR}/baseline.json)
  run(${ours} check ${WORK_DIR}/baseline.json)
  run(${ours} sweep ${stencil}/suite.json -o ${WORK_DIR}/sweep)
  run(${ours} report ${WORK_DIR}/sweep)
  set(point stencil/strips --n 97 --m 100 --M 64)
  run(${ours} trace ${point} -o ${WORK_DIR}/moves.json --din ${WORK_DIR}/moves.din)
  run(${ours} replay ${point} --at 64,1K)
  run(${ours} plot words ${WORK_DIR}/sweep --where n=97,m=100 -o ${WORK_DIR}/words.svg)
  run(${ours} plot occupancy ${point} -o ${WORK_DIR}/tiles.svg)

  file(COPY ${stencil} DESTINATION ${WORK_DIR}/broken)
  file(READ ${stencil}/stencil.cpp text)
  set(before "const Phase phase(machine, \"sweep\");")
  string(REPLACE "${before}" "${before}
  { const Tile once_more = machine.read(grid.block({0, 1}, {0, 1})); }" broken "${text}")
  if(broken STREQUAL text)
    message(FATAL_ERROR "nothing was broken")
  endif()
  file(WRITE ${WORK_DIR}/broken/stencil/stencil.cpp "${broken}")
  build_user(${WORK_DIR}/broken/stencil ${WORK_DIR}/broken/build ${BUILD_TYPE})
  execute_process(COMMAND ${WORK_DIR}/broken/build/stencil check ${WORK_DIR}/baseline.json
    OUTPUT_VARIABLE said RESULT_VARIABLE code)
  message("${said}")
  if(NOT code EQUAL 3 OR NOT said MATCHES "sweep +reads +11,058 +11,059 +\\+1")
    message(FATAL_ERROR "a read more went through the gate: exit ${code}")
  endif()
endif()

# This prefix is searched first. Other libraries are in Debian's directories.
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${TYPE_FLAGS} ${LINK_FLAGS}")
function(build_by_pkg_config package folder program)
  execute_process(COMMAND pkg-config ${ARGN} --cflags --libs ${package}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT found MATCHES "${prefix}")
    message(FATAL_ERROR "another redblue was found: ${found}")
  endif()
  separate_arguments(found UNIX_COMMAND "${found}")
  run(${COMPILER} -std=c++20 ${flags} -I ${folder} ${folder}/${program}.cpp -o ${WORK_DIR}/by_pkg_config
    ${found} -Wl,-rpath,${prefix}/${LIBDIR})
  run(${WORK_DIR}/by_pkg_config)
endfunction()
foreach(static "" --static)
  build_by_pkg_config(redblue ${source} main ${static})
  if(WITH_TOOLS)
    build_by_pkg_config(redblue-runtime ${one_call} attention ${static})
  endif()
endforeach()
execute_process(COMMAND pkg-config --cflags redblue
  OUTPUT_VARIABLE package_flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(package_flags UNIX_COMMAND "${package_flags}")

set(ENV{LC_ALL} C)  # in another locale the compiler may print another language
# All headers together. With an older standard, each header first says which standard it needs.
file(WRITE ${WORK_DIR}/all.cpp "${all}")
run(${COMPILER} -std=c++20 -fsyntax-only ${package_flags} -I ${source} ${WORK_DIR}/all.cpp)
foreach(header IN LISTS headers)
  file(WRITE ${WORK_DIR}/old.cpp "#include <redblue/${header}>\n")
  execute_process(COMMAND ${COMPILER} -std=c++17 -fsyntax-only ${package_flags} ${WORK_DIR}/old.cpp
    COMMAND_ECHO NONE ERROR_VARIABLE said RESULT_VARIABLE code)
  string(REGEX MATCH "error: [^\n]*" first "${said}")
  if(code EQUAL 0 OR NOT first MATCHES "redblue needs C\\+\\+20: compile with -std=c\\+\\+20")
    message(FATAL_ERROR "${header}, by C++17: ${said}")
  endif()
endforeach()
