// SPDX-License-Identifier: BSD-3-Clause
// The handle of the C entry points of the MoE library, and how they run calls on its layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/api/library.hpp"
#include "core/api/team_layer.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/moe/common/rank_mask.hpp"
#include "npushmem/moe.h"

struct npushmemx_moe {
    npushmem::moe::CombineConfig config;  // of the layer as it was made
    std::int32_t copy;
    npushmem::Members ranks;  // likewise
    npushmem::api::World* world;
    npushmem::moe::RankMask mask;
    npushmem::api::HeapMemory::Abandoned abandoned;        // of layers that a death has ended
    std::unique_ptr<npushmem::api::TeamLayer> team_layer;  // null after a mask that failed
    npushmem::moe::RankMask::Tables tables;                // with a mask: of the plan
    std::vector<std::int32_t> experts;                     // with a mask: of the tokens in the layer
    void** x = nullptr;  // receives the address of the rows of the dispatch in progress; or null
    std::string error;
};

namespace npushmem::api::moe_calls {

inline int refuse(const char* function, const Status& status) {
    fail_returned(function, status);
    return static_cast<int>(status.code());
}

inline Status check_layer(const npushmemx_moe& handle) {
    if (handle.team_layer != nullptr) return {};
    return {Code::state, "moe: the last npushmemx_moe_mask_ranks failed; repeat it, or destroy the handle"};
}

// Runs `action` on the handle's layer and keeps the text of its failure.
template <class Action>
int on_handle(const char* function, npushmemx_moe_t* handle, const Action& action) try {
    if (handle == nullptr) return refuse(function, {Code::argument, "handle is NULL"});
    const CurrentWorld in_world(*handle->world);
    Status status = runtime() != nullptr ? check_layer(*handle) : not_running();
    if (status.ok()) {
        handle->team_layer->memory().begin_call(function);
        status = action(handle->team_layer->layer());
    }
    handle->error = status.message();
    return status.ok() ? 0 : refuse(function, status);
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

// Runs `action` on the layer, unless a call is in progress there.
template <class Action>
int on_idle(const char* function, npushmemx_moe_t* handle, const Action& action) {
    return on_handle(function, handle, [&](moe::Layer& layer) {
        const Status idle = layer.idle();
        return idle.ok() ? action(layer) : idle;
    });
}

// Ends the running call. Sets *x after a dispatch.
inline Status wait(npushmemx_moe_t& handle) {
    void** const x = std::exchange(handle.x, nullptr);
    moe::Layer& layer = handle.team_layer->layer();
    Status status = layer.wait();
    if (!status.ok() || x == nullptr) return status;
    const auto rows = layer.expert_rows();
    if (rows.ok()) *x = rows.value();
    return rows.status();
}

}  // namespace npushmem::api::moe_calls
