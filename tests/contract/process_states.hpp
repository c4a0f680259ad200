// SPDX-License-Identifier: BSD-3-Clause
// What hanging processes are doing, as far as /proc shows it to this user.
#pragma once

#include <sys/types.h>

#include <string>

namespace npushmem::contract {

// One line per thread of the processes of a group: name, state, the kernel function in which it waits, its system call;
// then its stack in the kernel, if it is readable.
std::string states_of_group(pid_t group);

}  // namespace npushmem::contract
