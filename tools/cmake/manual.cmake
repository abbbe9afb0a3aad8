# Generates manual pages and shell completions by running the command.

set(made ${PROJECT_BINARY_DIR}/manual)
if(NOT CMAKE_CROSSCOMPILING)
  add_custom_command(TARGET redblue POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${made}
    COMMAND redblue manual --out ${made}/man1
    COMMAND redblue completion bash > ${made}/redblue
    COMMAND redblue completion zsh > ${made}/_redblue
    COMMAND redblue completion fish > ${made}/redblue.fish
    VERBATIM)
  install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  if(REDBLUE_WITH_MPI)  # its page is the page of redblue
    file(WRITE ${PROJECT_BINARY_DIR}/redblue-mpi.1 ".so man1/redblue.1\n")
    install(FILES ${PROJECT_BINARY_DIR}/redblue-mpi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT mpi)
  endif()
  install(FILES ${made}/redblue COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${made}/_redblue COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${made}/redblue.fish COMPONENT command
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
