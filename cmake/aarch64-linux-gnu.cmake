# SPDX-License-Identifier: BSD-3-Clause
# Builds for aarch64 with Debian's cross compiler and multiarch packages; tests run under qemu-user. CONTRIBUTING.md has the
# commands.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Without -L: the loader in /usr/aarch64-linux-gnu is of another version than the multiarch libc, and threads hang in that pair.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi) # notes about gcc versions before 10
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
