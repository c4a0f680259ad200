// What a context handle stands for, in the form that the data functions need: where the PEs of its team are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>

#include "core/base/liveness.hpp"
#include "core/ops/fast_map.hpp"
#include "npushmem/handles.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem {
class RemoteAccess;
}

namespace npushmem::api {

class ContextUse;

struct Context {
    // none: nothing that the program has made; first, so that zeros mean it.
    enum class State { none, alive, destroyed, invalid };

    FastMap map;      // PEs by their numbers in the team; first, because every operation begins with it
    PeRange members;  // world PEs by the numbers in the team; nobody, unless it is alive
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    State state = State::none;
    RemoteAccess* remote = nullptr;  // its own queues, for PEs that are not mapped
    ContextUse* use = nullptr;       // null: any use is fine, or nobody asked for a check
};

// The world's, filled while the runtime is up: the functions without a context use it by its address, at no cost.
extern Context default_context;
inline constexpr FastMap& fast = default_context.map;

// Of NPUSHMEM_CTX_INVALID: reaches nobody, so that the slow path reports it.
extern const Context no_context;

// The contexts that the program makes lie in this array, each in a slot of its own: see ContextSlots. The last slot is
// never used.
inline constexpr std::size_t max_contexts = (1U << 14) - 1;
inline constexpr std::size_t context_slot_bytes = 256;
static_assert(sizeof(Context) <= context_slot_bytes);
extern std::byte context_slots[(max_contexts + 1) * context_slot_bytes];

// What a handle stands for that is the address of no slot. Until the thread's next call of it.
const Context& unknown_context(npushmem_ctx_t handle);

// Null where the handle is the address of no slot. In a slot that holds no context, there is one that reaches nobody.
// Calls nothing, so that fast paths keep what they have in registers.
inline const Context* known_context(npushmem_ctx_t handle) {
    // The bits of a distance from the array's beginning to that of a slot; other bits are in no such distance.
    constexpr std::uintptr_t slot_bits = max_contexts * context_slot_bytes;
    const std::uintptr_t distance =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(context_slots);
    if ((distance & ~slot_bits) == 0) [[likely]] {
        const auto* const context = reinterpret_cast<const Context*>(handle);
        // Spares every caller the question whether what was found is null as well.
        if (context == nullptr) __builtin_unreachable();
        return context;
    }
    return handle == NPUSHMEM_CTX_DEFAULT ? &default_context : nullptr;
}

inline const Context& context_of(npushmem_ctx_t handle) {
    const Context* const known = known_context(handle);
    return known != nullptr ? *known : unknown_context(handle);
}

}  // namespace npushmem::api

namespace npushmem::api {

// Where the contexts lie that the program makes: its handles are their addresses.
// Gives out the slots of context_slots; there is one of it at a time. One thread at a time, but for what
// known_context() reads.
class ContextSlots {
public:
    // An empty context; null when all are taken. One that was given back is taken only if `min_unused` of them are, or
    // no other is left, so that handles of contexts that were destroyed name none for as long.
    Context* acquire(std::size_t min_unused);
    // Leaves a context there that was destroyed.
    void release(Context& context);

    // All that have been taken hold nothing from now on.
    void clear();

private:
    std::size_t used_ = 0;
    std::deque<Context*> unused_;  // in the order in which they were given back
};

// The contexts that programs have made.
// May the context be used? Code::argument, with what it is instead.
Status check_context(const Context& context);

// Completes and ends those that were made from the team.
Status destroy_contexts_of(npushmem_team_t team);

// When the library ends: completes those that are left, while the PEs still meet; then ends them.
Status complete_contexts();
void destroy_contexts();

// In a child that a PE made by fork: without a lock, which a thread of the PE may have held, makes all handles name
// nothing.
void clear_contexts();

// NPUSHMEM_CHECK: who uses a context whose options promise that not everybody does. Only contexts with such options
// have one of these, and only where calls are checked.
// Any thread.
class ContextUse {
public:
    // By the thread that makes the context.
    ContextUse(long options, int my_pe) : options_(options), my_pe_(my_pe) {}
    ContextUse(const ContextUse&) = delete;
    ContextUse& operator=(const ContextUse&) = delete;

    // One call on a context, from its beginning to its end.
    class Call {
    public:
        // Of a context without a ContextUse: nothing.
        explicit Call(const Context& context);
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call();
        // Code::argument: another thread owns the context, or is inside a call on it.
        [[nodiscard]] const Status& status() const { return status_; }

    private:
        ContextUse* use_;
        Status status_;
    };

private:
    long options_;
    int my_pe_;
    std::thread::id owner_thread_ = std::this_thread::get_id();
    // Relaxed: the number alone matters; what it finds is a mistake that the calls themselves do not depend on.
    std::atomic<int> active_calls_{0};
};

}  // namespace npushmem::api
