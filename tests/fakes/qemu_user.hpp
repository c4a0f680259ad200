// SPDX-License-Identifier: BSD-3-Clause
// Whether qemu-user runs this program, for tests of what it lacks.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace npushmem::fakes {

// qemu-user answers for /proc/self/exe with the program, but leaves this name of the same link to the kernel.
inline bool runs_under_qemu_user() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/thread-self/exe", error).filename().string().starts_with("qemu-");
}

}  // namespace npushmem::fakes
