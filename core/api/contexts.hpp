// SPDX-License-Identifier: BSD-3-Clause
// Contexts: the form that the data functions need, their slots, and their checks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>

#include "core/api/world.hpp"
#include "core/base/liveness.hpp"
#include "core/map/fast_map.hpp"
#include "npushmem/handles.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem {
class RemoteAccess;
}

namespace npushmem::api {

class ContextUse;

struct Context {
    // none: not made by the program; first, so that zeroed memory has this state.
    enum class State { none, alive, destroyed, invalid };

    FastMap map;      // PEs by their numbers in the team; first, because every operation begins with it
    PeRange members;  // world PEs by their numbers in the team; empty unless the context is alive
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    State state = State::none;
    RemoteAccess* remote = nullptr;  // its own queues, for PEs that are not mapped
    ContextUse* use = nullptr;       // null: any use is allowed, or calls are not checked
    World* world = nullptr;          // null unless the context is alive
};

// The context of the default world, filled while that runs. Functions without a context use it by its address, at no
// cost. Its map's all_mapped is 1 only if the PEs of all other worlds are mapped too: then fence and quiet need not
// know the world. It changes while other threads read it, so read it by maps_all().
extern Context default_context;
inline constexpr FastMap& fast = default_context.map;

// The context of NPUSHMEM_CTX_INVALID: it reaches no PE, so the slow path reports it.
extern const Context no_context;

// The program's contexts are in this array, each in its own slot: see ContextSlots. The last slot is never used.
inline constexpr std::size_t max_contexts = (1U << 14) - 1;
inline constexpr std::size_t context_slot_bytes = 256;
static_assert(sizeof(Context) <= context_slot_bytes);
extern std::byte context_slots[(max_contexts + 1) * context_slot_bytes];

// Returns the context of a handle that is not the address of a slot. The result is valid until the thread's next call.
const Context& unknown_context(npushmem_ctx_t handle);

// Returns null if the handle is not the address of a slot. A slot without a context holds one that reaches no PE. Calls
// no function, so that fast paths keep their registers.
inline const Context* known_context(npushmem_ctx_t handle) {
    // The bits of the distance from the array's beginning to a slot; no such distance has other bits.
    constexpr std::uintptr_t slot_bits = max_contexts * context_slot_bytes;
    const std::uintptr_t distance =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(context_slots);
    if ((distance & ~slot_bits) == 0) [[likely]] {
        const auto* const context = reinterpret_cast<const Context*>(handle);
        // Saves every caller a null check of the result.
        if (context == nullptr) __builtin_unreachable();
        return context;
    }
    return handle == NPUSHMEM_CTX_DEFAULT ? &default_context : nullptr;
}

// Returns whether the CPU's order suffices for fence and quiet.
inline bool maps_all(const Context& context) {
    // Relaxed: a thread that makes a world knows it.
    return __atomic_load_n(&context.map.all_mapped, __ATOMIC_RELAXED) != 0;
}

// One call on a context: its world is the thread's current one until the call ends. The default context stands for that
// of the current world.
class ActingContext {
public:
    explicit ActingContext(const Context& given)
        : context_(&given == &default_context ? *current_world->context.load(std::memory_order_relaxed) : given),
          world_(context_.world != nullptr ? *context_.world : *current_world) {}

    [[nodiscard]] const Context& operator*() const { return context_; }

private:
    const Context& context_;
    CurrentWorld world_;
};

inline const Context& context_of(npushmem_ctx_t handle) {
    const Context* const known = known_context(handle);
    return known != nullptr ? *known : unknown_context(handle);
}

}  // namespace npushmem::api

namespace npushmem::api {

// Allocates the slots of context_slots; one instance exists at a time. One thread at a time, except for reads by
// known_context().
class ContextSlots {
public:
    // Returns an empty context; null if all slots are taken. Reuses a released slot only if more than `min_unused`
    // slots are released, or if no other is left, so that handles of destroyed contexts stay invalid for as long.
    Context* acquire(std::size_t min_unused);
    // Marks the slot's context as destroyed.
    void release(Context& context);

    // Empties all slots that were taken.
    void clear();

private:
    std::size_t used_ = 0;
    std::deque<Context*> unused_;  // in the order of their release
};

// Checks that the context may be used; otherwise Code::argument, with its state.
Status check_context(const Context& context);

// Completes and destroys the contexts that were made from the team of the current world.
Status destroy_contexts_of(npushmem_team_t team);

// When a world ends: completes its remaining contexts, while the PEs still synchronise; then destroys them.
Status complete_contexts(const World& world);
void destroy_contexts(const World& world);

// Returns an empty context for a world that a program makes; null if there is no room.
Context* acquire_world_context();
// Marks it as destroyed.
void release_world_context(Context& context);

// Invalidates all handles in a child that a PE made by fork. Takes no lock, because a thread of the PE may have held
// it.
void clear_contexts();

// NPUSHMEM_CHECK: detects uses of a context that break the promise of its options. Only contexts with such options have
// one, and only if calls are checked. Any thread.
class ContextUse {
public:
    // The thread that makes the context calls it.
    ContextUse(long options, int my_pe) : options_(options), my_pe_(my_pe) {}
    ContextUse(const ContextUse&) = delete;
    ContextUse& operator=(const ContextUse&) = delete;

    // One call on a context, from its beginning to its end.
    class Call {
    public:
        // Does nothing for a context without a ContextUse.
        explicit Call(const Context& context);
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call();
        // Code::argument if another thread owns the context or is inside a call on it.
        [[nodiscard]] const Status& status() const { return status_; }

    private:
        ContextUse* use_;
        Status status_;
    };

private:
    long options_;
    int my_pe_;
    std::thread::id owner_thread_ = std::this_thread::get_id();
    // Relaxed: only the number matters; calls do not depend on it.
    std::atomic<int> active_calls_{0};
};

}  // namespace npushmem::api
