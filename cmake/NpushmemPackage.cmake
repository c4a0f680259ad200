# SPDX-License-Identifier: BSD-3-Clause
# `cpack -G TGZ` in a build folder writes one archive of everything that is installed. It can be unpacked into any folder:
# programs, plugins, the CMake package and the pkg-config files find each other by relative paths. One archive for each of
# the components runtime, development and testing: add -D CPACK_ARCHIVE_COMPONENT_INSTALL=ON.
# Debian packages are made by debian/, not by CPack.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME npushmem)
set(CPACK_PACKAGE_VENDOR "The npushmem authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_RESOURCE_FILE_README "${PROJECT_SOURCE_DIR}/README.md")
set(CPACK_PACKAGE_FILE_NAME "npushmem-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
