// What a context handle stands for, in the form that the data functions need: where the PEs of its team are.
#pragma once

#include <cstdint>

#include "core/base/liveness.hpp"
#include "core/ops/fast_map.hpp"
#include "npushmem/handles.h"

namespace npushmem::api {

struct Context {
    FastMap map;      // PEs by their numbers in the team; first, because every operation begins with it
    PeRange members;  // world PEs by the numbers in the team
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    long options = 0;
};

// The world's, filled while the runtime is up: the functions without a context use it by its address, at no cost.
extern Context default_context;
// Of NPUSHMEM_CTX_INVALID: reaches nobody, so that the slow path reports it.
extern const Context no_context;

inline constexpr FastMap& fast = default_context.map;

// Handles are addresses, but for the predefined ones.
inline const Context& context_of(npushmem_ctx_t handle) {
    if (reinterpret_cast<std::uintptr_t>(handle) > reinterpret_cast<std::uintptr_t>(NPUSHMEM_CTX_DEFAULT)) [[likely]]
        return *reinterpret_cast<const Context*>(handle);
    return handle == NPUSHMEM_CTX_DEFAULT ? default_context : no_context;
}

}  // namespace npushmem::api
