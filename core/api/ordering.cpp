// SPDX-License-Identifier: BSD-3-Clause
// fence, quiet and their forms for contexts; barrier_all, sync_all.
#include <atomic>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/contexts.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/parking.hpp"
#include "npushmem.h"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

namespace {

template <class Call>
void report_failure_of(const char* function, Runtime* up, Call&& call) try {
    const Status done = up != nullptr ? call(*up) : not_running();
    if (!done.ok()) [[unlikely]]
        fail(function, done);
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

template <class Call>
void report_failure(const char* function, Call&& call) {
    report_failure_of(function, runtime(), std::forward<Call>(call));
}

// Runs a barrier of the world.
template <class Sync>
void sync_world(const char* function, Sync&& run_sync) {
    report_failure_of(function, runtime_unnoted(), [&](Runtime& up) {
        return run_same_call(up, up.teams().world(), function, [&] { return run_sync(up); });
    });
}

// Completes the operations in a context's own queues, off the fast paths so that these keep their registers. An invalid
// context has nothing to complete.
template <class Call>
[[gnu::noinline]] void complete(const char* function, npushmem_ctx_t ctx, Call call) {
    if (ctx == NPUSHMEM_CTX_INVALID) return;
    const ActingContext acting(context_of(ctx));
    const Context& context = *acting;
    report_failure(function, [&](Runtime&) {
        const ContextUse::Call use(context);
        Status usable = use.status().ok() ? check_context(context) : use.status();
        return usable.ok() ? call(context) : usable;
    });
}

void pe_quiet(const char* function, npushmem_ctx_t ctx, const int* pes, size_t count) {
    complete(function, ctx, [=](const Context& context) -> Status {
        std::vector<int> world;
        for (size_t i = 0; i < count && pes != nullptr; ++i) {
            const auto pe = world_pe(context, pes[i]);
            if (!pe.ok()) return pe.status();
            if (!maps_all(context)) world.push_back(pe.value());
        }
        Status done = world.empty() ? Status{} : context.remote->quiet(world);
        full_fence();
        return done;
    });
}

// Every PE is mapped, so the CPU's order suffices.
bool all_mapped() { return maps_all(default_context); }
bool all_mapped(npushmem_ctx_t ctx) {
    const Context* const known = known_context(ctx);
    return known != nullptr && maps_all(*known);
}

}  // namespace

extern "C" {

void npushmem_fence(void) {
    // Release: an observer that acquires a later store sees the earlier ones.
    std::atomic_thread_fence(std::memory_order_release);
    if (all_mapped()) [[likely]]
        return;
    report_failure(__func__, [](Runtime& up) { return up.transports().remote().fence(); });
}

void npushmem_quiet(void) {
    if (all_mapped()) [[likely]] {
        // As in WorldSynchronization::quiet: a later load must not pass an earlier store.
        full_fence();
        return;
    }
    report_failure(__func__, [](Runtime& up) { return up.synchronization().quiet(); });
}

// As npushmem_fence and npushmem_quiet, for one context.
void npushmem_ctx_fence(npushmem_ctx_t ctx) {
    std::atomic_thread_fence(std::memory_order_release);
    if (all_mapped(ctx)) [[likely]]
        return;
    complete(__func__, ctx, [](const Context& context) { return context.remote->fence(); });
}

void npushmem_ctx_quiet(npushmem_ctx_t ctx) {
    if (all_mapped(ctx)) [[likely]] {
        full_fence();
        return;
    }
    complete(__func__, ctx, [](const Context& context) {
        Status done = context.remote->quiet();
        full_fence();
        return done;
    });
}

// A mapped PE's data was copied by the call itself.
void npushmemx_flush(void) {
    if (all_mapped()) [[likely]]
        return;
    report_failure_of(__func__, runtime_unnoted(), [](Runtime& up) { return up.transports().remote().quiet(); });
}

void npushmemx_ctx_flush(npushmem_ctx_t ctx) {
    if (all_mapped(ctx)) [[likely]]
        return;
    complete(__func__, ctx, [](const Context& context) { return context.remote->quiet(); });
}

void npushmem_pe_quiet(const int* pes, size_t count) { pe_quiet(__func__, NPUSHMEM_CTX_DEFAULT, pes, count); }

void npushmem_ctx_pe_quiet(npushmem_ctx_t ctx, const int* pes, size_t count) { pe_quiet(__func__, ctx, pes, count); }

void npushmem_barrier_all(void) {
    sync_world(__func__, [](Runtime& up) { return up.synchronization().barrier_all(); });
}

void npushmem_sync_all(void) {
    sync_world(__func__, [](Runtime& up) { return up.synchronization().sync_all(); });
}

int npushmemx_barrier_all_by(const char* algorithm) {
    Runtime* up = runtime();
    const auto run_barrier = [up, algorithm, function = __func__] {
        const CollectiveCall call(up->teams().world().calls(), function);
        return up->synchronization().barrier_all(algorithm);
    };
    Status done = up == nullptr          ? not_running()
                  : algorithm == nullptr ? Status{Code::argument, "algorithm is NULL"}
                                         : run_barrier();
    if (!done.ok()) fail_returned(__func__, done);
    return static_cast<int>(done.code());
}

const char* npushmemx_describe_barriers(void) {
    static const std::string text = barrier::describe_algorithms();
    return text.c_str();
}

int npushmemx_get_pe_density(int* pes_per_node, double* pes_per_core) {
    Runtime* up = runtime();
    if (up == nullptr) {
        fail_returned(__func__, not_running());
        return static_cast<int>(Code::not_initialized);
    }
    const barrier::BarrierSelectionInput& selection_input = up->teams().world().barrier().selection_input();
    if (pes_per_node != nullptr) *pes_per_node = selection_input.pes_per_node();
    if (pes_per_core != nullptr) *pes_per_core = selection_input.pes_per_core;
    return 0;
}

}  // extern "C"
