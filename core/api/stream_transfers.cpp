// SPDX-License-Identifier: BSD-3-Clause
// Put and get of every type in the order of a stream.
#include <array>
#include <cstring>
#include <memory>

#include "core/api/access.hpp"
#include "core/api/stream_queue.hpp"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

using StridedCall = void (*)(void*, const void*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int);

// Returns the plain call for elements of this size.
StridedCall strided_put(std::size_t size) {
    switch (size) {
        case 1: return npushmem_iput8;
        case 2: return npushmem_iput16;
        case 4: return npushmem_iput32;
        case 8: return npushmem_iput64;
        default: return npushmem_iput128;
    }
}

StridedCall strided_get(std::size_t size) {
    switch (size) {
        case 1: return npushmem_iget8;
        case 2: return npushmem_iget16;
        case 4: return npushmem_iget32;
        case 8: return npushmem_iget64;
        default: return npushmem_iget128;
    }
}

int queue_strided(const char* function, StridedCall call, void* dest, const void* source, std::ptrdiff_t dst,
                  std::ptrdiff_t sst, std::size_t count, int pe, npushmemx_stream_t stream) {
    return queue_call(function, stream, [=] {
        call(dest, source, dst, sst, count, pe);
        npushmem_quiet();
    });
}

int queue_get(const char* function, void* dest, const void* source, std::uint64_t bytes, int pe,
              npushmemx_stream_t stream) {
    return queue_call(function, stream, [=] { npushmem_getmem(dest, source, bytes, pe); });
}

using AnyValue = std::array<std::byte, sizeof(long double)>;

// Puts a value that the launch holds.
int queue_value(const char* function, void* dest, const void* value, std::size_t bytes, int pe,
                npushmemx_stream_t stream) {
    AnyValue held{};
    std::memcpy(held.data(), value, bytes);
    return queue_call(function, stream, [=] {
        npushmem_putmem(dest, held.data(), bytes, pe);
        npushmem_quiet();
    });
}

// Fills *value when all that the stream has queued before has ended. A failure of the stream stays in it. The launch
// holds the place that it writes: after a failure it may end later than this call.
void get_value(const char* function, void* value, const void* source, std::size_t bytes, int pe,
               npushmemx_stream_t stream) {
    const auto held = std::make_shared<AnyValue>();
    if (queue_call(function, stream, [=] { npushmem_getmem(held->data(), source, bytes, pe); }) != 0) return;
    const auto found = stream_of(stream);
    npu::Event got;
    Status done = found.ok() ? got.record(*found.value()) : found.status();
    if (done.ok()) done = got.synchronize();
    if (!done.ok()) return fail(function, done);
    std::memcpy(value, held->data(), bytes);
}

int queue_put(const char* function, void* dest, const void* source, std::uint64_t bytes, int pe,
              npushmemx_stream_t stream) {
    return queue_call(function, stream, [=] {
        npushmem_putmem(dest, source, bytes, pe);
        npushmem_quiet();
    });
}

int queue_put_signal(const char* function, void* dest, const void* source, std::uint64_t bytes, std::uint64_t* sig_addr,
                     std::uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream) {
    return queue_call(function, stream, [=] {
        npushmem_putmem_signal(dest, source, bytes, sig_addr, signal, sig_op, pe);
        npushmem_quiet();
    });
}

}  // namespace

// The functions of the table, by their names there.
template <class T>
int p_on_stream(const char* function, T* dest, T value, int pe, npushmemx_stream_t stream) {
    return queue_value(function, dest, &value, sizeof value, pe, stream);
}

template <class T>
T g_on_stream(const char* function, const T* source, int pe, npushmemx_stream_t stream) {
    T value{};
    get_value(function, &value, source, sizeof value, pe, stream);
    return value;
}

#define NPUSHMEM_TRANSFER(NAME, CALL)                                                         \
    template <class T>                                                                        \
    int NAME(const char* function, void* dest, const void* source, std::size_t count, int pe, \
             npushmemx_stream_t stream) {                                                     \
        return CALL(function, dest, source, byte_count(count, sizeof(T)), pe, stream);        \
    }
NPUSHMEM_TRANSFER(put_on_stream, queue_put)
NPUSHMEM_TRANSFER(get_on_stream, queue_get)
NPUSHMEM_TRANSFER(put_nbi_on_stream, queue_put)
NPUSHMEM_TRANSFER(get_nbi_on_stream, queue_get)
#undef NPUSHMEM_TRANSFER

template <class T>
int iput_on_stream(const char* function, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                   std::size_t count, int pe, npushmemx_stream_t stream) {
    return queue_strided(function, strided_put(sizeof(T)), dest, source, dst, sst, count, pe, stream);
}

template <class T>
int iget_on_stream(const char* function, void* dest, const void* source, std::ptrdiff_t dst, std::ptrdiff_t sst,
                   std::size_t count, int pe, npushmemx_stream_t stream) {
    return queue_strided(function, strided_get(sizeof(T)), dest, source, dst, sst, count, pe, stream);
}

template <class T>
int put_signal_on_stream(const char* function, void* dest, const void* source, std::size_t count,
                         std::uint64_t* sig_addr, std::uint64_t signal, int sig_op, int pe, npushmemx_stream_t stream) {
    return queue_put_signal(function, dest, source, byte_count(count, sizeof(T)), sig_addr, signal, sig_op, pe, stream);
}

template <class T>
int put_signal_nbi_on_stream(const char* function, void* dest, const void* source, std::size_t count,
                             std::uint64_t* sig_addr, std::uint64_t signal, int sig_op, int pe,
                             npushmemx_stream_t stream) {
    return put_signal_on_stream<T>(function, dest, source, count, sig_addr, signal, sig_op, pe, stream);
}

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/stream_transfers.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
