// SPDX-License-Identifier: BSD-3-Clause
// Worlds: each is one PE of one job. Beside the default world, which npushmem_init starts, a process may have others.
//
// A call acts on the world of its context. Calls without a context act on the current world of their thread. The fast
// paths of such calls read the default world's map only: objects of other worlds are not in it, so the slow path gets
// them and finds the current world. The default world pays nothing for the others.
#pragma once

#include <atomic>
#include <cstdint>

namespace npushmem {
class Runtime;
}

namespace npushmem::api {

struct Context;

// Never freed, because it may be another thread's current world when it ends.
struct World {
    // Null outside start..end. Release on change, acquire on read.
    std::atomic<Runtime*> runtime{nullptr};
    // The context of the calls without one; it reaches no PE outside start..end. Relaxed: it is set before the program
    // gets the world, and reset when no call may act on it any more.
    std::atomic<const Context*> context;
    std::uint32_t number = 0;  // 0: the default world
};

extern constinit World default_world;
// Initial-exec: one load from the thread's block, without a call.
extern thread_local constinit World* current_world [[gnu::tls_model("initial-exec")]];

// Makes a world the thread's current one while the object lives.
class CurrentWorld {
public:
    explicit CurrentWorld(World& world) : before_(current_world) { current_world = &world; }
    CurrentWorld(const CurrentWorld&) = delete;
    CurrentWorld& operator=(const CurrentWorld&) = delete;
    ~CurrentWorld() { current_world = before_; }

private:
    World* before_;
};

}  // namespace npushmem::api
