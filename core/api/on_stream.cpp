// SPDX-License-Identifier: BSD-3-Clause
// Host operations in the order of a stream that have one form for all types, and the streams.
#include "npushmem/on_stream.h"

#include <fmt/core.h>

#include <cstring>
#include <memory>

#include "core/api/stream_queue.hpp"
#include "npushmemx.h"

namespace npushmem::api {

Result<npu::Stream*> stream_of(npushmemx_stream_t handle) {
    Runtime* up = runtime_unnoted();
    if (up == nullptr) return not_running();
    if (handle != nullptr) {
        auto* const stream = reinterpret_cast<npu::Stream*>(handle);
        Status bound = up->npu().bind(*stream);
        return bound.ok() ? Result<npu::Stream*>(stream) : Result<npu::Stream*>(bound);
    }
    auto device = up->npu().device();
    if (!device.ok()) return device.status();
    return &device.value()->default_stream();
}

Result<npu::Compare> compare_of(int comparison) {
    switch (comparison) {
        case NPUSHMEM_CMP_EQ: return npu::Compare::equal;
        case NPUSHMEM_CMP_NE: return npu::Compare::not_equal;
        case NPUSHMEM_CMP_GT: return npu::Compare::greater;
        case NPUSHMEM_CMP_LE: return npu::Compare::less_equal;
        case NPUSHMEM_CMP_LT: return npu::Compare::less;
        case NPUSHMEM_CMP_GE: return npu::Compare::greater_equal;
        default: break;
    }
    return Status{Code::argument,
                  fmt::format("comparison {}: expected NPUSHMEM_CMP_EQ to NPUSHMEM_CMP_GE", comparison)};
}

void expect_success(const char* what, int code) {
    if (code == 0) return;
    if (!last_failure().ok()) throw npu::KernelError(last_failure());
    throw npu::KernelError(static_cast<Code>(code), fmt::format("{} failed with code {}", what, code));
}

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;
using npushmem::npu::Core;
using npushmem::npu::Stream;

extern "C" {

int npushmemx_stream_create(npushmemx_stream_t* stream) {
    return code_of_call(__func__, [stream]() -> Status {
        if (stream == nullptr) return {Code::argument, "stream is NULL"};
        auto made = std::make_unique<Stream>();
        Runtime* up = runtime_unnoted();
        Status bound = up == nullptr ? Status{} : up->npu().bind(*made);
        if (bound.ok()) *stream = reinterpret_cast<npushmemx_stream_t>(made.release());
        return bound;
    });
}

int npushmemx_stream_destroy(npushmemx_stream_t stream) {
    return code_of_call(__func__, [stream]() -> Status {
        if (stream == nullptr) return {Code::argument, "the default stream cannot be destroyed"};
        const std::unique_ptr<Stream> owned(reinterpret_cast<Stream*>(stream));
        return owned->close();
    });
}

int npushmemx_stream_synchronize(npushmemx_stream_t stream) {
    return code_of_call(__func__, [stream] {
        const auto found = stream_of(stream);
        return found.ok() ? found.value()->synchronize() : found.status();
    });
}

int npushmemx_device_synchronize(void) {
    return code_of_call(__func__, [] {
        Runtime* up = runtime_unnoted();
        if (up == nullptr) return not_running();
        auto device = up->npu().device();
        return device.ok() ? device.value()->synchronize() : device.status();
    });
}

int npushmemx_memcpy_on_stream(void* dest, const void* source, size_t bytes, npushmemx_stream_t stream) {
    return queue(__func__, stream, [=](Core&) { std::memcpy(dest, source, bytes); });
}

int npushmemx_memset_on_stream(void* dest, int value, size_t bytes, npushmemx_stream_t stream) {
    return queue(__func__, stream, [=](Core&) { std::memset(dest, value, bytes); });
}

int npushmemx_barrier_on_stream(npushmem_team_t team, npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmemx_team_barrier", stream,
                            [team] { return npushmemx_team_barrier(team); });
}

int npushmemx_team_sync_on_stream(npushmem_team_t team, npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmem_team_sync", stream, [team] { return npushmem_team_sync(team); });
}

int npushmemx_sync_all_on_stream(npushmemx_stream_t stream) {
    return queue_call(
        __func__, stream, [] { npushmem_sync_all(); }, true);
}

int npushmemx_quiet_on_stream(npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [] { npushmem_quiet(); });
}

int npushmemx_flush_on_stream(npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [] { npushmemx_flush(); });
}

int npushmemx_barrier_all_on_stream(npushmemx_stream_t stream) {
    return queue_call(
        __func__, stream, [] { npushmem_barrier_all(); }, true);
}

int npushmemx_putmem_on_stream(void* dest, const void* source, size_t bytes, int pe, npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [=] {
        npushmem_putmem(dest, source, bytes, pe);
        npushmem_quiet();
    });
}

int npushmemx_getmem_on_stream(void* dest, const void* source, size_t bytes, int pe, npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [=] { npushmem_getmem(dest, source, bytes, pe); });
}

int npushmemx_putmem_signal_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr, uint64_t signal,
                                      int sig_op, int pe, npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [=] {
        npushmem_putmem_signal(dest, source, bytes, sig_addr, signal, sig_op, pe);
        npushmem_quiet();
    });
}

int npushmemx_putmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe, npushmemx_stream_t stream) {
    return npushmemx_putmem_on_stream(dest, source, bytes, pe, stream);
}

int npushmemx_getmem_nbi_on_stream(void* dest, const void* source, size_t bytes, int pe, npushmemx_stream_t stream) {
    return npushmemx_getmem_on_stream(dest, source, bytes, pe, stream);
}

int npushmemx_putmem_signal_nbi_on_stream(void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                                          uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream) {
    return npushmemx_putmem_signal_on_stream(dest, source, bytes, sig_addr, signal, sig_op, pe, stream);
}

int npushmemx_signal_op_on_stream(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream) {
    return queue_call(__func__, stream, [=] {
        npushmemx_signal_op(sig_addr, signal, sig_op, pe);
        npushmem_quiet();
    });
}

int npushmemx_signal_wait_until_on_stream(uint64_t* sig_addr, int comparison, uint64_t value,
                                          npushmemx_stream_t stream) {
    return code_of_call(__func__, [=, function = __func__]() -> Status {
        const auto compare = compare_of(comparison);
        if (!compare.ok()) return compare.status();
        if (sig_addr == nullptr) return {Code::argument, "sig_addr is NULL"};
        return launch_call(function, stream, [=, test = compare.value()](Core& core) {
            core.signal_wait_until(sig_addr, test, value, -1, no_line);
        });
    });
}

int npushmemx_broadcastmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes, int root,
                                     npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmem_broadcastmem", stream,
                            [=] { return npushmem_broadcastmem(team, dest, source, bytes, root); });
}

int npushmemx_collectmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                   npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmem_collectmem", stream,
                            [=] { return npushmem_collectmem(team, dest, source, bytes); });
}

int npushmemx_fcollectmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                    npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmem_fcollectmem", stream,
                            [=] { return npushmem_fcollectmem(team, dest, source, bytes); });
}

int npushmemx_alltoallmem_on_stream(npushmem_team_t team, void* dest, const void* source, size_t bytes,
                                    npushmemx_stream_t stream) {
    return queue_collective(__func__, "npushmem_alltoallmem", stream,
                            [=] { return npushmem_alltoallmem(team, dest, source, bytes); });
}

}  // extern "C"
