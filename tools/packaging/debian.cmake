# Adjusts the installed files of a package to Debian's rules: a Debian changelog, compressed pages,
# libraries without debug information, no empty directories, and Debian's path for zsh completions.

set(packages "${CPACK_TEMPORARY_DIRECTORY}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # from SOURCE_DATE_EPOCH, if it is set
file(GLOB documented ${packages}/*/usr/share/doc/*/copyright)
foreach(copyright IN LISTS documented)
  cmake_path(GET copyright PARENT_PATH directory)
  file(WRITE ${directory}/changelog.Debian
    "redblue (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Made from the sources of this version.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
endforeach()

file(GLOB zsh ${packages}/*/usr/share/zsh/site-functions)
foreach(functions IN LISTS zsh)
  cmake_path(GET functions PARENT_PATH parent)
  file(RENAME ${functions} ${parent}/vendor-completions)
endforeach()

file(GLOB_RECURSE pages ${packages}/*/usr/share/man/*.1 ${packages}/*/usr/share/doc/changelog*)
if(pages)
  execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
# cpack strips programs.
file(GLOB_RECURSE objects ${packages}/*.a ${packages}/*/usr/bin/redblue*)
if(objects)
  execute_process(COMMAND strip --strip-debug --remove-section=.comment ${objects}
    COMMAND_ERROR_IS_FATAL ANY)
endif()
execute_process(COMMAND find ${packages} -type d -empty -delete COMMAND_ERROR_IS_FATAL ANY)
