// SPDX-License-Identifier: BSD-3-Clause
// What a process that does not end waits for.
#pragma once

namespace npushmem::storm {

// True if the first thread of the process waits for a lock of the C library: in the library's variables, as those of
// streams and of the first arena of malloc, or in another arena. False without the right to examine the process.
bool waits_for_libc_lock(int pid);

}  // namespace npushmem::storm
