// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory: malloc to free, and npushmem_ptr.
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "core/api/access.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/out_of_memory.hpp"
#include "npushmem.h"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

namespace {

// Adds the remedy to a failure by a death that the job survives.
Status with_remedy(const Status& failed) {
    const Runtime* const up = runtime_unnoted();
    if (failed.code() != Code::peer_dead || up == nullptr || !up->settings().survives_deaths) return failed;
    return {failed.code(), failed.message() +
                               "; after npushmemx_team_shrink of NPUSHMEM_TEAM_WORLD the symmetric heap "
                               "is shared by the living alone"};
}

void* report(const char* function, Result<void*> made) {
    if (made.ok()) return made.value();
    fail_by_value(function, with_remedy(made.status()));
    return nullptr;
}

// Checks that all PEs call the heap. (The heap compares the calls and their arguments itself.)
Status same_call(Runtime& up) { return check_same_call(up.teams().living(), "npushmem_malloc or a related function"); }

void* allocate(const char* function, HeapCall call, std::uint64_t bytes, std::uint64_t alignment) {
    return end_on_bad_alloc(function, [&] {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return report(function, not_running());
        const CollectiveCall in_progress(up->teams().world().calls(), function);
        const Status same = bytes > 0 ? same_call(*up) : Status{};
        if (!same.ok()) return report(function, same);
        // Programs older than OpenSHMEM 1.2 may request different sizes on different PEs.
        const bool may_differ = uses_openshmem_names() && !up->settings().check;
        return report(function, up->collective_heap().allocate(call, bytes, alignment,
                                                               may_differ ? Sizes::may_differ : Sizes::alike));
    });
}

}  // namespace

extern "C" {

void* npushmem_malloc(size_t bytes) {
    return allocate(__func__, HeapCall::malloc, bytes, Allocator::default_alignment);
}

void* npushmem_calloc(size_t count, size_t bytes) {
    return allocate(__func__, HeapCall::calloc, byte_count(count, bytes), Allocator::default_alignment);
}

void* npushmem_align(size_t alignment, size_t bytes) {
    // An alignment below a pointer's size is undefined in the standard; other libraries round up.
    if (std::has_single_bit(alignment))
        return allocate(__func__, HeapCall::align, bytes, std::max(alignment, sizeof(void*)));
    return end_on_bad_alloc(__func__, [alignment, function = __func__] {
        return report(function, Status{Code::argument, fmt::format("alignment {} is not a power of two", alignment)});
    });
}

void* npushmem_malloc_with_hints(size_t bytes, long hints) {
    const bool huge = (hints & NPUSHMEMX_MALLOC_HUGE_PAGES) != 0;
    return allocate(__func__, HeapCall::malloc, bytes, huge ? huge_page_bytes : Allocator::default_alignment);
}

void npushmem_free(void* object) {
    if (object == nullptr) return;
    run_call(__func__, [object, function = __func__]() -> Status {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return not_running();
        const CollectiveCall in_progress(up->teams().world().calls(), function);
        Status freed = same_call(*up);
        if (freed.ok()) freed = up->collective_heap().free(object);
        return with_remedy(freed);
    });
}

void* npushmem_realloc(void* object, size_t bytes) {
    if (object == nullptr) return npushmem_malloc(bytes);
    if (bytes == 0) {
        npushmem_free(object);
        return nullptr;
    }
    return end_on_bad_alloc(__func__, [&, function = __func__] {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return report(function, not_running());
        const CollectiveCall in_progress(up->teams().world().calls(), function);
        const Status same = same_call(*up);
        return report(function, same.ok() ? up->collective_heap().reallocate(object, bytes) : Result<void*>(same));
    });
}

void* npushmem_ptr(const void* object, int pe) {
    // This PE's variables are at two addresses, of which the program knows one: the slow path handles it.
    const bool variable = reinterpret_cast<std::uintptr_t>(object) - fast.statics < fast.statics_bytes;
    if (void* address = fast.address(object, pe); address != nullptr && !variable) return address;
    Runtime* up = runtime_unnoted();
    if (up != nullptr && pe != up->my_pe()) up->npu().note_host_access();
    return end_on_bad_alloc(__func__, [&, function = __func__] {
        const Status checked = up != nullptr ? check_object(*up, "the object", object, 1, pe) : not_running();
        if (!checked.ok()) return report(function, checked);
        return pe == up->my_pe() ? const_cast<void*>(object) : up->slices().mapped(pe, up->slices().offset_of(object));
    });
}

int npushmem_addr_accessible(const void* addr, int pe) {
    return end_on_bad_alloc(__func__, [&] {
        const Runtime* up = runtime_unnoted();
        return up != nullptr && check_object(*up, "the address", addr, 1, pe).ok() ? 1 : 0;
    });
}

void* npushmemx_buffer_register_symmetric(void* addr, size_t length, int flags) {
    return end_on_bad_alloc(__func__, [&, function = __func__] {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return report(function, not_running());
        const CollectiveCall in_progress(up->teams().world().calls(), function);
        const Status same = same_call(*up);
        return report(function, same.ok() ? up->buffers().add(addr, length, flags) : Result<void*>(same));
    });
}

int npushmemx_buffer_unregister_symmetric(void* addr, size_t length) {
    return code_of_call(__func__, [&, function = __func__]() -> Status {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return not_running();
        const CollectiveCall in_progress(up->teams().world().calls(), function);
        const Status same = same_call(*up);
        return same.ok() ? up->buffers().remove(addr, length) : same;
    });
}

int npushmemx_buffer_register(void* addr, size_t length) {
    return code_of_call(__func__, [&] {
        Runtime* up = runtime_unnoted();
        return up != nullptr ? up->transports().local_buffers().add(addr, length) : not_running();
    });
}

int npushmemx_buffer_unregister(void* addr) {
    return code_of_call(__func__, [&] {
        Runtime* up = runtime_unnoted();
        return up != nullptr ? up->transports().local_buffers().remove(addr) : not_running();
    });
}

void npushmemx_buffer_unregister_all(void) {
    run_call(__func__, [] {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return not_running();
        up->transports().local_buffers().remove_all();
        return Status{};
    });
}

int npushmemx_heap_info(npushmemx_heap_info_t* info) {
    return code_of_call(__func__, [info]() -> Status {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return not_running();
        if (info == nullptr) return {Code::argument, "info is NULL"};
        const AllocatorStatistics statistics = up->slices().heap().statistics();
        *info = {statistics.capacity, statistics.used, statistics.largest_free, statistics.high_water};
        return {};
    });
}

}  // extern "C"
