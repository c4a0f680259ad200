# SPDX-License-Identifier: BSD-3-Clause
# Installation: library, headers, plugins in a folder of their own, and the two ways by which other projects find them.
include(CMakePackageConfigHelpers)

install(TARGETS npushmem npushmem_openshmem npushmem_headers EXPORT npushmem_targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "testing" EXCLUDE)
foreach(guide api:include npu:include/npushmem/npu plugin:include/npushmem/plugin)
  string(REGEX MATCH "(.*):(.*)" guide "${guide}")
  install(FILES "${CMAKE_MATCH_2}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}/guides" RENAME "${CMAKE_MATCH_1}.md"
          COMPONENT development)
endforeach()
install(FILES core/python/README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/guides" RENAME python.md COMPONENT development)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
install(EXPORT npushmem_targets NAMESPACE npushmem:: FILE npushmem-targets.cmake
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/npushmem" COMPONENT development)

configure_package_config_file(cmake/npushmem-config.cmake.in "${CMAKE_BINARY_DIR}/npushmem-config.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/npushmem" PATH_VARS NPUSHMEM_PLUGIN_INSTALL_DIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/npushmem-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/npushmem-config.cmake" "${CMAKE_BINARY_DIR}/npushmem-config-version.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/npushmem" COMPONENT development)

# From the folder of the .pc file back to the prefix, so that a moved installation stays usable.
file(RELATIVE_PATH NPUSHMEM_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" NPUSHMEM_PC_TO_PREFIX "${NPUSHMEM_PC_TO_PREFIX}")
configure_file(cmake/npushmem.pc.in "${CMAKE_BINARY_DIR}/npushmem.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/npushmem.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
configure_file(cmake/npushmem-openshmem.pc.in "${CMAKE_BINARY_DIR}/npushmem-openshmem.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/npushmem-openshmem.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# The Python package. It finds the library of its installation in the folders above it, else by the loader.
set(NPUSHMEM_PYTHON_INSTALL_DIR "lib/python3/dist-packages" CACHE STRING
    "Folder of the Python package, relative to the installation prefix")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/core/python/npushmem" DESTINATION "${NPUSHMEM_PYTHON_INSTALL_DIR}" COMPONENT runtime
        FILES_MATCHING PATTERN "*.py")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/tests/outside/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)

# What tests of plugins need: the contracts as a library, mocks, fakes, matchers.
if(TARGET npushmem_testing)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/npushmem/testing" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/npushmem"
          COMPONENT testing)
  install(TARGETS npushmem_testing EXPORT npushmem_testing_targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT testing)
  install(EXPORT npushmem_testing_targets NAMESPACE npushmem:: FILE npushmem-testing-targets.cmake
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/npushmem" COMPONENT testing)
  configure_file(cmake/npushmem-testing.pc.in "${CMAKE_BINARY_DIR}/npushmem-testing.pc" @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/npushmem-testing.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT testing)
endif()

# The reference: of the functions out of the headers, guides out of Markdown, and man pages and completion of the programs,
# which print them out of their tables of options. Programs for another machine need an emulator for this, and those with
# sanitizers are not installed.
set(reference "${CMAKE_BINARY_DIR}/reference")
set(reference_files)
if(Python3_FOUND)
  file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h" "${PROJECT_SOURCE_DIR}/include/*.md"
       "${PROJECT_SOURCE_DIR}/core/tools/man/*.md")
  add_custom_command(OUTPUT "${reference}/html/index.html"
                     COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/scripts/make-reference"
                             --output "${reference}" --cc "${CMAKE_C_COMPILER}"
                     DEPENDS scripts/make-reference ${public_headers} VERBATIM)
  list(APPEND reference_files "${reference}/html/index.html")
  install(DIRECTORY "${reference}/html" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
  install(DIRECTORY "${reference}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT development)
endif()

# npushmem_program_document(<program> <component> <option> <folder of the installation> <file> [DEPENDS ...]): what the program
# prints for the option.
function(npushmem_program_document program component option destination file)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  set(output "${reference}/programs/${option}/${file}")
  file(MAKE_DIRECTORY "${reference}/programs/${option}")
  add_custom_command(OUTPUT "${output}" COMMAND ${program} ${option} > "${output}" DEPENDS ${program} ${arg_DEPENDS} VERBATIM)
  install(FILES "${output}" DESTINATION "${destination}" COMPONENT ${component})
  set(reference_files ${reference_files} "${output}" PARENT_SCOPE)
endfunction()
# npushmem_program_documents(<component> <program...>): their man pages and completions; programs that are not built are left out.
function(npushmem_program_documents component)
  foreach(program IN LISTS ARGN)
    if(TARGET ${program})
      npushmem_program_document(${program} ${component} --print-man "${CMAKE_INSTALL_MANDIR}/man1" ${program}.1)
      npushmem_program_document(${program} ${component} --print-completion
                                "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" ${program})
    endif()
  endforeach()
  set(reference_files ${reference_files} PARENT_SCOPE)
endfunction()
if(NOT NPUSHMEM_SANITIZE AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  npushmem_program_documents(runtime npushmem-run npushmem-info npushmem-perf)
  npushmem_program_documents(testing npushmem-contract-transport npushmem-contract-bootstrap
                             npushmem-contract-collectives)
  get_property(plugins GLOBAL PROPERTY NPUSHMEM_PLUGINS)
  npushmem_program_document(npushmem-info runtime --print-man-variables "${CMAKE_INSTALL_MANDIR}/man7" npushmem-variables.7
                            DEPENDS ${plugins})
endif()
if(reference_files)
  add_custom_target(reference ALL DEPENDS ${reference_files})
endif()

# The compilers and the launcher of OpenSHMEM by the names that its programs expect. A distribution where another package owns
# these names installs them in another folder.
set(NPUSHMEM_OPENSHMEM_BINDIR "${CMAKE_INSTALL_BINDIR}" CACHE STRING
    "Folder of oshcc, oshc++ and oshrun, relative to the installation prefix")
file(RELATIVE_PATH OSH_TO_PREFIX "/prefix/${NPUSHMEM_OPENSHMEM_BINDIR}" "/prefix")
string(REGEX REPLACE "/$" "" OSH_TO_PREFIX "${OSH_TO_PREFIX}")
function(npushmem_install_compiler tool language variable compiler)
  set(OSH_TOOL ${tool})
  set(OSH_LANGUAGE ${language})
  set(OSH_VARIABLE ${variable})
  set(OSH_COMPILER ${compiler})
  configure_file(core/tools/openshmem/compiler.in "${CMAKE_BINARY_DIR}/openshmem/${tool}" @ONLY)
  install(PROGRAMS "${CMAKE_BINARY_DIR}/openshmem/${tool}" DESTINATION "${NPUSHMEM_OPENSHMEM_BINDIR}" COMPONENT development)
endfunction()
npushmem_install_compiler(oshcc C OSHCC cc)
npushmem_install_compiler(oshc++ C++ OSHCXX c++)
configure_file(core/tools/openshmem/oshrun.in "${CMAKE_BINARY_DIR}/openshmem/oshrun" @ONLY)
install(PROGRAMS "${CMAKE_BINARY_DIR}/openshmem/oshrun" DESTINATION "${NPUSHMEM_OPENSHMEM_BINDIR}" COMPONENT runtime)
