// SPDX-License-Identifier: BSD-3-Clause
// Put, get and put_signal of every type, expanded from the tables of npushmem/types.h.
#include <atomic>
#include <cstring>

#include "core/api/access.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

// The number of bytes that one load and store copies: one element, or for untyped forms their most common size.
template <class T>
constexpr std::size_t unit = sizeof(T) == 1 && !std::is_arithmetic_v<T> ? sizeof(std::uint64_t) : sizeof(T);

// One element, the most common size, is a load and a store; the call that copies any number costs more than both.
template <std::size_t Unit>
[[gnu::always_inline]] inline void copy(const Context& context, void* to, const void* from, std::uint64_t bytes) {
    if (bytes == Unit)
        std::memcpy(to, from, Unit);
    else if (suits_block_copy(bytes))
        context.map.copy(to, from, bytes);
    else
        std::memcpy(to, from, bytes);
}

// For the writer of bytes that the PE may await.
[[gnu::always_inline]] inline void wake_awaiting_pe(const Context& context, void* target, std::uint64_t bytes, int pe) {
    if (context.map.has_sleepers()) [[unlikely]]
        wake_pe(context.map.slice(pe), target, bytes);
}

// One element or a few bytes may be flags that the PE awaits.
constexpr std::uint64_t max_flag_bytes = 16;

// The copy of more bytes is the last call, so that it needs no stack.
template <std::size_t Unit>
[[gnu::always_inline]] inline void put_mapped(const Context& context, void* to, const void* from, std::uint64_t bytes,
                                              int pe) {
    if (bytes > max_flag_bytes) return copy<Unit>(context, to, from, bytes);
    if (bytes == Unit)
        std::memcpy(to, from, Unit);
    else
        std::memcpy(to, from, bytes);
    wake_awaiting_pe(context, to, bytes, pe);
}

// Releases: the data before the signal are visible to a PE that sees it (acquire in the waits and tests).
inline void update_signal(std::uint64_t* word, std::uint64_t signal, int operation) {
    std::atomic_ref target(*word);
    if (operation == NPUSHMEM_SIGNAL_OP_SET)
        target.store(signal, std::memory_order_release);
    else
        target.fetch_add(signal, std::memory_order_release);
}

// The slow path of the single-element forms takes the value, so that the fast path needs no stack.
template <class T>
[[gnu::noinline]] void p_slow_path(T* dest, T value, int pe, const char* function, const Context& context) {
    put_slow_path(dest, &value, sizeof value, pe, function, context);
}

template <class T>
[[gnu::noinline]] T g_slow_path(const T* source, int pe, const char* function, const Context& context) {
    T value{};
    get_slow_path(&value, source, sizeof value, pe, function, context);
    return value;
}

void put_and_signal(const Context& context, const char* function, void* dest, const void* source, std::uint64_t bytes,
                    std::uint64_t* signal_word, std::uint64_t signal, int operation, int pe, bool deferred) {
    void* target = context.map.address(dest, bytes, pe);
    void* word = context.map.address(signal_word, sizeof *signal_word, pe);
    const bool usable = word != nullptr && (target != nullptr || bytes == 0) && (source != nullptr || bytes == 0) &&
                        (operation == NPUSHMEM_SIGNAL_OP_SET || operation == NPUSHMEM_SIGNAL_OP_ADD) &&
                        reinterpret_cast<std::uintptr_t>(word) % sizeof *signal_word == 0;
    if (!usable) [[unlikely]]
        return put_signal_slow_path(context, function, dest, source, bytes, signal_word, signal, operation, pe,
                                    deferred);
    if (bytes > 0) copy<sizeof(std::uint64_t)>(context, target, source, bytes);
    update_signal(static_cast<std::uint64_t*>(word), signal, operation);
    wake_awaiting_pe(context, word, sizeof *signal_word, pe);
}

// Strided blocks of `block` elements of `size` bytes, `count` of them, `stride` elements apart.
struct Shape {
    std::size_t count;
    std::size_t block;
    std::size_t size;

    [[nodiscard]] bool empty() const { return count == 0 || block == 0; }
    // Returns the bytes from the first to the end of the last block; on overflow more than any heap holds.
    [[nodiscard]] std::uint64_t extent(std::ptrdiff_t stride) const {
        const std::uint64_t steps = byte_count(count - 1, static_cast<std::size_t>(stride));
        const std::uint64_t last = byte_count(steps, size);
        std::uint64_t bytes = 0;
        return __builtin_add_overflow(last, byte_count(block, size), &bytes) ? byte_count(~std::size_t{0}, 2) : bytes;
    }
};

// Checks the strides and the extent of the remote side: reports at most once, before any data moves.
bool check_strided(const Context& context, const char* function, const void* object, const void* local,
                   std::ptrdiff_t object_stride, std::ptrdiff_t local_stride, const Shape& shape, int pe) {
    Runtime* up = runtime();
    Result<int> world = up != nullptr ? world_pe(context, pe) : Result<int>(not_running());
    Status checked = world.status();
    if (checked.ok() && (object_stride < 1 || local_stride < 1))
        checked = {Code::argument, "strides must be at least 1; they are " + std::to_string(object_stride) +
                                       " at the PE and " + std::to_string(local_stride) + " here"};
    if (checked.ok() && !shape.empty() && local == nullptr) checked = {Code::argument, "the local array is NULL"};
    if (checked.ok() && !shape.empty())
        checked = check_object(*up, "the array", object, shape.extent(object_stride), world.value());
    if (!checked.ok()) fail(function, checked);
    return checked.ok() && !shape.empty();
}

// The strides in elements of type T.
template <class T>
StridedBlocks blocks(std::ptrdiff_t remote_stride, std::ptrdiff_t local_stride, const Shape& shape) {
    const auto bytes = [](std::ptrdiff_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(T); };
    return {0, bytes(remote_stride), bytes(local_stride), shape.block * sizeof(T), shape.count};
}

}  // namespace

template <class T>
[[gnu::always_inline]] inline void p(const Context& context, const char* function, T* dest, T value, int pe) {
    const auto store = [&](void* target, std::byte* slice) {
        *static_cast<T*>(target) = value;
        if (context.map.has_sleepers()) [[unlikely]]
            wake_pe(slice, target, sizeof(T));
    };
    context.map.access(dest, sizeof(T), pe, store, [&] { p_slow_path(dest, value, pe, function, context); });
}

template <class T>
[[gnu::always_inline]] inline T g(const Context& context, const char* function, const T* source, int pe) {
    if (const void* target = context.map.address(source, sizeof(T), pe)) [[likely]]
        return *static_cast<const T*>(target);
    return g_slow_path(source, pe, function, context);
}

template <class T>
[[gnu::always_inline]] inline void put(const Context& context, const char* function, void* dest, const void* source,
                                       std::size_t count, int pe) {
    const std::uint64_t bytes = byte_count(count, sizeof(T));
    void* target = context.map.address(dest, bytes, pe);
    if (target != nullptr && source != nullptr) [[likely]]
        put_mapped<unit<T>>(context, target, source, bytes, pe);
    else
        put_slow_path(dest, source, bytes, pe, function, context);
}

template <class T>
[[gnu::always_inline]] inline void get(const Context& context, const char* function, void* dest, const void* source,
                                       std::size_t count, int pe) {
    const std::uint64_t bytes = byte_count(count, sizeof(T));
    const void* target = context.map.address(source, bytes, pe);
    if (target != nullptr && dest != nullptr) [[likely]]
        copy<unit<T>>(context, dest, target, bytes);
    else
        get_slow_path(dest, source, bytes, pe, function, context);
}

// The _nbi forms on mapped memory are complete when they return.
template <class T>
[[gnu::always_inline]] inline void put_nbi(const Context& context, const char* function, void* dest, const void* source,
                                           std::size_t count, int pe) {
    const std::uint64_t bytes = byte_count(count, sizeof(T));
    void* target = context.map.address(dest, bytes, pe);
    if (target != nullptr && source != nullptr) [[likely]]
        put_mapped<unit<T>>(context, target, source, bytes, pe);
    else
        put_nbi_slow_path(dest, source, bytes, pe, function, context);
}

template <class T>
[[gnu::always_inline]] inline void get_nbi(const Context& context, const char* function, void* dest, const void* source,
                                           std::size_t count, int pe) {
    const std::uint64_t bytes = byte_count(count, sizeof(T));
    const void* target = context.map.address(source, bytes, pe);
    if (target != nullptr && dest != nullptr) [[likely]]
        copy<unit<T>>(context, dest, target, bytes);
    else
        get_nbi_slow_path(dest, source, bytes, pe, function, context);
}

template <class T>
void put_signal(const Context& context, const char* function, void* dest, const void* source, std::size_t count,
                std::uint64_t* word, std::uint64_t signal, int operation, int pe) {
    put_and_signal(context, function, dest, source, byte_count(count, sizeof(T)), word, signal, operation, pe, false);
}

template <class T>
void put_signal_nbi(const Context& context, const char* function, void* dest, const void* source, std::size_t count,
                    std::uint64_t* word, std::uint64_t signal, int operation, int pe) {
    put_and_signal(context, function, dest, source, byte_count(count, sizeof(T)), word, signal, operation, pe, true);
}

// The caller may reuse the source on return.
template <class T>
void iput(const Context& given, const char* function, void* dest, const void* source, std::ptrdiff_t dst,
          std::ptrdiff_t sst, std::size_t count, int pe) {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (!check_strided(context, function, dest, source, dst, sst, {count, 1, sizeof(T)}, pe)) return;
    const T* from = static_cast<const T*>(source);
    T* const first = static_cast<T*>(context.map.address(dest, pe));
    if (first == nullptr)
        return put_blocks_slow_path(context, function, dest, source, blocks<T>(dst, sst, {count, 1, sizeof(T)}), pe);
    T* target = first;
    for (std::size_t i = 0; i < count; ++i, target += dst, from += sst) *target = *from;
    wake_awaiting_pe(context, first, Shape{count, 1, sizeof(T)}.extent(dst), pe);
}

template <class T>
void iget(const Context& given, const char* function, void* dest, const void* source, std::ptrdiff_t dst,
          std::ptrdiff_t sst, std::size_t count, int pe) {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (!check_strided(context, function, source, dest, sst, dst, {count, 1, sizeof(T)}, pe)) return;
    T* to = static_cast<T*>(dest);
    if (const T* target = static_cast<const T*>(context.map.address(source, pe)))
        for (std::size_t i = 0; i < count; ++i, to += dst, target += sst) *to = *target;
    else
        get_blocks_slow_path(context, function, dest, source, blocks<T>(sst, dst, {count, 1, sizeof(T)}), pe);
}

template <class T>
void ibput(const Context& given, const char* function, void* dest, const void* source, std::ptrdiff_t dst,
           std::ptrdiff_t sst, std::size_t block, std::size_t count, int pe) {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (!check_strided(context, function, dest, source, dst, sst, {count, block, sizeof(T)}, pe)) return;
    if (context.map.address(dest, pe) == nullptr)
        return put_blocks_slow_path(context, function, dest, source, blocks<T>(dst, sst, {count, block, sizeof(T)}),
                                    pe);
    T* to = static_cast<T*>(dest);
    const T* from = static_cast<const T*>(source);
    for (std::size_t i = 0; i < count; ++i, to += dst, from += sst) put<T>(context, function, to, from, block, pe);
}

template <class T>
void ibget(const Context& given, const char* function, void* dest, const void* source, std::ptrdiff_t dst,
           std::ptrdiff_t sst, std::size_t block, std::size_t count, int pe) {
    const ActingContext acting(given);
    const Context& context = *acting;
    if (!check_strided(context, function, source, dest, sst, dst, {count, block, sizeof(T)}, pe)) return;
    if (context.map.address(source, pe) == nullptr)
        return get_blocks_slow_path(context, function, dest, source, blocks<T>(sst, dst, {count, block, sizeof(T)}),
                                    pe);
    T* to = static_cast<T*>(dest);
    const T* from = static_cast<const T*>(source);
    for (std::size_t i = 0; i < count; ++i, to += dst, from += sst) get<T>(context, function, to, from, block, pe);
}

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/rma.h"
#include "core/api/definitions.hpp"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#undef NPUSHMEM_HALF_TYPES

extern "C" {

void npushmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {
    npushmem::api::put_and_signal(npushmem::api::default_context, __func__, nullptr, nullptr, 0, sig_addr, signal,
                                  sig_op, pe, false);
}

}  // extern "C"
