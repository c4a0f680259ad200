// SPDX-License-Identifier: BSD-3-Clause
// Checks that the versions in the project's CMakeLists.txt, in npushmemx.h (for programs) and in version.hpp (for the
// library) are equal.
#include "core/base/version.hpp"

#include "npushmemx.h"

namespace npushmem {

constexpr bool is_library_version(int major, int minor, int patch) {
    return library_version.major == major && library_version.minor == minor && library_version.patch == patch;
}

static_assert(is_library_version(NPUSHMEMX_VERSION_MAJOR, NPUSHMEMX_VERSION_MINOR, NPUSHMEMX_VERSION_PATCH),
              "npushmemx.h and core/base/version.hpp have different versions");
static_assert(is_library_version(NPUSHMEM_PROJECT_MAJOR, NPUSHMEM_PROJECT_MINOR, NPUSHMEM_PROJECT_PATCH),
              "CMakeLists.txt and core/base/version.hpp have different versions");

}  // namespace npushmem
