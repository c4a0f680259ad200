// SPDX-License-Identifier: BSD-3-Clause
// The C entry points for layouts of MoE calls: cached dispatches and gradients.
#include <cstddef>
#include <memory>
#include <utility>

#include "core/api/moe_handle.hpp"
#include "npushmemx.h"

struct npushmemx_moe_layout {
    npushmem::moe::RoutedLayout layout;
    npushmem::Members ranks;  // of the handle
    const npushmem::api::World* world;
};

namespace npushmem::api {
namespace {

using namespace moe_calls;

bool same(const Members& a, const Members& b) {
    if (a.count() != b.count()) return false;
    for (int i = 0; i < a.count(); ++i) {
        if (a.at(i) != b.at(i)) return false;
    }
    return true;
}

Status set_layout(npushmemx_moe& handle, const npushmemx_moe_layout_t* given) {
    moe::Layer& layer = handle.team_layer->layer();
    const auto refuse_layout = [&](const char* why) {
        const moe::RoutedLayout none{std::make_shared<moe::RoutedRows>(), nullptr, {}, layer.combine().config()};
        return layer.set_layout(none, {Code::argument, why});
    };
    if (given == nullptr) return refuse_layout("layout is NULL");
    if (given->world != handle.world || !same(given->ranks, handle.team_layer->memory().members()))
        return refuse_layout("moe: the layout is from a handle with other ranks");
    return layer.set_layout(given->layout);
}

Status start_cached_dispatch(npushmemx_moe& handle, const void* in, void** x) {
    Status started = handle.team_layer->layer().start_cached_dispatch(static_cast<const std::byte*>(in));
    if (started.ok()) handle.x = x;
    return started;
}

}  // namespace
}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

int npushmemx_moe_get_layout(const npushmemx_moe_t* handle, npushmemx_moe_layout_t** layout) {
    if (handle == nullptr || layout == nullptr) return refuse(__func__, {Code::argument, "handle or layout is NULL"});
    *layout = nullptr;
    if (const Status s = check_layer(*handle); !s.ok()) return refuse(__func__, s);
    TeamLayer& team_layer = *handle->team_layer;
    auto made = team_layer.layer().layout();
    if (!made.ok()) return refuse(__func__, made.status());
    *layout = new npushmemx_moe_layout{std::move(made).value(), team_layer.memory().members(), handle->world};
    return 0;
}

int npushmemx_moe_set_layout(npushmemx_moe_t* handle, const npushmemx_moe_layout_t* layout) {
    return on_idle(__func__, handle, [&](moe::Layer&) { return set_layout(*handle, layout); });
}

void npushmemx_moe_layout_destroy(npushmemx_moe_layout_t* layout) { delete layout; }

int npushmemx_moe_dispatch_cached(npushmemx_moe_t* handle, const void* in, void** x) {
    return on_idle(__func__, handle, [&](moe::Layer&) {
        Status started = start_cached_dispatch(*handle, in, x);
        return started.ok() ? wait(*handle) : started;
    });
}

int npushmemx_moe_dispatch_cached_nbi(npushmemx_moe_t* handle, const void* in, void** x) {
    return on_idle(__func__, handle, [&](moe::Layer&) { return start_cached_dispatch(*handle, in, x); });
}

int npushmemx_moe_combine_backward(npushmemx_moe_t* handle, const void* grad_out, const void* x, void* grad_x,
                                   float* grad_weights) {
    return on_idle(__func__, handle, [&](moe::Layer& layer) {
        return layer.combine_backward(static_cast<const std::byte*>(grad_out), static_cast<const std::byte*>(x),
                                      static_cast<std::byte*>(grad_x), grad_weights);
    });
}

int npushmemx_moe_dispatch_backward(npushmemx_moe_t* handle, const void* grad_x, void* grad_in) {
    return on_idle(__func__, handle, [&](moe::Layer& layer) {
        return layer.dispatch_backward(static_cast<const std::byte*>(grad_x), static_cast<std::byte*>(grad_in));
    });
}

}  // extern "C"
