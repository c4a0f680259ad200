// SPDX-License-Identifier: BSD-3-Clause
// The worlds: their start and end, and their state in a forked child. All mutable state at namespace scope is here, in
// failures.cpp and in contexts.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/api/contexts.hpp"
#include "core/api/failures.hpp"
#include "core/api/world.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/runtime.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

// The highest level of thread support that the program has requested; the library itself supports all levels.
int thread_level();
void raise_thread_level(int requested);

// Returns that of the thread's current world; null outside its start..end. The kernel checker takes the call for the
// start of a host operation that may order accesses of kernels on this and other PEs.
Runtime* runtime();
// The same for calls that order nothing, or only as meetings of all PEs do.
Runtime* runtime_unnoted();

// Starts the default world, or counts one more start if the current world runs already.
Status start(const StartRequest& request);
// Reverts one start of the current world; the last one ends the default world. Fails if it was not running.
Status stop();

// Beside a unique id and rank: variables that replace those of the environment, by their full names, and plugins that
// the program contains.
struct WorldRequest {
    StartRequest start;
    std::map<std::string, std::string> variables;
    GivenPlugins plugins;
};
// Each is called by one thread at a time for the same world, and by any number for different ones. Worlds have numbers
// from 1.
Result<std::uint32_t> create_world(const WorldRequest& request);
// How a world ends: collectively, as by finalize, or at once, so that the other PEs find this one gone.
enum class WorldEnd { finalize, abort };
Status end_world(std::uint32_t number, WorldEnd how);
// Returns a world that runs; 0: the default one, also if it does not run.
Result<World*> find_world(std::uint32_t number);

// Returns the failure "called outside init..finalize".
Status not_running();

// Returns whether a PE made this process by fork: it is not a PE.
bool is_forked_child();

}  // namespace npushmem::api
