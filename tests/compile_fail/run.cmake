# A case that must not compile. With -DCONTROL it compiles, which shows that the rest of the file is
# sound. Without it, the compiler must refuse it for the reason in the file's first line:
#   // expect: <regular expression>
file(STRINGS ${CASE} first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${CASE}: the first line must be `// expect: <regular expression>`")
endif()
set(expected "${CMAKE_MATCH_1}")

# In other locales the compiler may use another language or other quotation marks.
set(ENV{LC_ALL} C)
include(${CMAKE_CURRENT_LIST_DIR}/flags.cmake)
set(compile ${COMPILER} ${flags} -fsyntax-only -include ${HEADERS} ${CASE})

execute_process(COMMAND ${compile} -DCONTROL RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the control does not compile:\n${output}")
endif()

execute_process(COMMAND ${compile} RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "${CASE} compiles, and must not")
endif()
if(NOT output MATCHES "${expected}")
  message(FATAL_ERROR "refused, but not with \"${expected}\":\n${output}")
endif()
