# Writes what ctest is to run of a program of tests, after it is linked: a process takes a suite, or
# a share of a large one. A process for each case would start thousands of them.
#   NAME, PROGRAM, DIRECTORY, LABEL   of the program
#   FILE                              to write
set(most 12)  # cases of a process: with more, long ones would end late; with fewer, many would start

execute_process(COMMAND ${PROGRAM} --gtest_list_tests
  OUTPUT_VARIABLE listed TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " *#[^\n]*" "" listed "${listed}")  # parameters, of which one may be a whole file
string(REPLACE "\n" ";" lines "${listed}")

# Threads that wait give their core to other tests.
set(wait OMP_WAIT_POLICY=passive)
# A process of which cases were skipped and none failed ends with the name of one that was skipped.
set(skipped "\\[  SKIPPED \\] [^\n]*\n*$")
set(script "")
macro(add_suite)
  string(REGEX REPLACE "\\.$" "" name "${NAME}.${suite}")
  math(EXPR processes "(${cases} + ${most} - 1) / ${most}")
  set(index 0)
  while(index LESS processes)
    set(test ${name})
    set(label ${LABEL})
    if(suite MATCHES "^Perf")  # time limits, which fail on a busy machine
      set(label perf)
    endif()
    if(processes GREATER 1)
      string(APPEND test ".${index}")
    endif()
    string(APPEND script
      "add_test([=[${test}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}*]=])\n"
      "set_tests_properties([=[${test}]=] PROPERTIES LABELS ${label} TIMEOUT 6000\n"
      "  ENVIRONMENT GTEST_TOTAL_SHARDS=${processes}\\;GTEST_SHARD_INDEX=${index}\\;${wait}\n"
      "  WORKING_DIRECTORY [=[${DIRECTORY}]=] SKIP_REGULAR_EXPRESSION [=[${skipped}]=])\n")
    math(EXPR index "${index} + 1")
  endwhile()
endmacro()
set(cases 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^  ")
    math(EXPR cases "${cases} + 1")
  elseif(line MATCHES "\\.$")
    add_suite()
    set(suite ${line})
    set(cases 0)
  endif()
endforeach()
add_suite()
file(WRITE ${FILE} "${script}")
