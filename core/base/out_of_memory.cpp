// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/out_of_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace npushmem {

void end_without_memory(const char* call) noexcept {
    const auto part = [](const char* text) { return iovec{const_cast<char*>(text), std::strlen(text)}; };
    const std::array parts{part("npushmem: "), part(call), part(": "), part(no_private_memory), part(", so it ends\n")};
    (void)!::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
    ::_exit(1);
}

}  // namespace npushmem
