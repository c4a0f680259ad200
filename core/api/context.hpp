// What a context handle stands for, in the form that the data functions need: where the PEs of its team are.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/liveness.hpp"
#include "core/ops/fast_map.hpp"
#include "npushmem/handles.h"

namespace npushmem {
class RemoteAccess;
}

namespace npushmem::api {

class ContextUse;

struct Context {
    enum class State { none, alive, destroyed, foreign };

    FastMap map;      // PEs by their numbers in the team; first, because every operation begins with it
    PeRange members;  // world PEs by the numbers in the team; nobody, unless it is alive
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    long options = 0;
    State state = State::none;
    RemoteAccess* remote = nullptr;  // its own queues, for PEs that are not mapped
    ContextUse* use = nullptr;       // null: any use is fine, or nobody asked for a check
};

struct DefaultContext : Context {
    // Handles above this number are taken for addresses of contexts that live. With NPUSHMEM_CHECK, and outside
    // init..finalize, none is.
    std::uintptr_t trusted_above = std::numeric_limits<std::uintptr_t>::max();
};

// The world's, filled while the runtime is up: the functions without a context use it by its address, at no cost.
extern DefaultContext default_context;
// Of NPUSHMEM_CTX_INVALID: reaches nobody, so that the slow path reports it.
extern const Context no_context;

inline constexpr FastMap& fast = default_context.map;

// What the handle stands for where handles are not trusted: one that lives, has been destroyed, or is none of ours.
const Context& find_context(npushmem_ctx_t handle);

// Null when it must be looked for. Calls nothing, so that fast paths keep what they have in registers.
inline const Context* known_context(npushmem_ctx_t handle) {
    if (reinterpret_cast<std::uintptr_t>(handle) > default_context.trusted_above) [[likely]]
        return reinterpret_cast<const Context*>(handle);
    return handle == NPUSHMEM_CTX_DEFAULT ? &default_context : nullptr;
}

inline const Context& context_of(npushmem_ctx_t handle) {
    const Context* const known = known_context(handle);
    return known != nullptr ? *known : find_context(handle);
}

}  // namespace npushmem::api
