// SPDX-License-Identifier: BSD-3-Clause
// The one runtime that the C API needs: its start, its end, and its state in a forked child. All mutable state at
// namespace scope is here, in failures.cpp and in contexts.cpp.
#pragma once

#include "core/api/contexts.hpp"
#include "core/api/failures.hpp"
#include "core/runtime/runtime.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

// The highest level of thread support that the program has requested; the library itself supports all levels.
int thread_level();
void raise_thread_level(int requested);

// Returns null outside init..finalize. The kernel checker takes the call for the start of a host operation that may
// order accesses of kernels on this and other PEs.
Runtime* runtime();
// The same for calls that order nothing, or only as meetings of all PEs do.
Runtime* runtime_unnoted();

// Starts the library, or counts one more start if it runs already.
Status start(const StartRequest& request);
// Reverts one start; the last one ends the library. Fails if the library was not running.
Status stop();

// Returns the failure "called outside init..finalize".
Status not_running();

// Returns whether a PE made this process by fork: it is not a PE.
bool is_forked_child();

}  // namespace npushmem::api
