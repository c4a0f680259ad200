// Put, get and put_signal of every type, expanded from the tables of npushmem/types.h.
#include <atomic>
#include <cstring>

#include "core/api/access.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

constexpr std::size_t untyped_unit = sizeof(std::uint64_t);  // what the forms without a type are most often used for

// One element, the commonest size, is a load and a store; the call that copies any number costs more than both.
template <std::size_t Unit>
[[gnu::always_inline]] inline void copy(void* to, const void* from, std::uint64_t bytes) {
    if (bytes == Unit)
        std::memcpy(to, from, Unit);
    else if (suits_block_copy(bytes))
        fast.copy(to, from, bytes);
    else
        std::memcpy(to, from, bytes);
}

// The _nbi forms on mapped memory are complete when they return, so both kinds share everything here.
template <std::size_t Unit>
[[gnu::always_inline]] inline void put(const char* function, void* dest, const void* source, std::uint64_t bytes,
                                       int pe, bool later) {
    void* target = fast.address(dest, bytes, pe);
    if (target != nullptr && source != nullptr) [[likely]]
        copy<Unit>(target, source, bytes);
    else
        put_slowly(dest, source, bytes, pe, function, later);
}

template <std::size_t Unit>
[[gnu::always_inline]] inline void get(const char* function, void* dest, const void* source, std::uint64_t bytes,
                                       int pe, bool later) {
    const void* target = fast.address(source, bytes, pe);
    if (target != nullptr && dest != nullptr) [[likely]]
        copy<Unit>(dest, target, bytes);
    else
        get_slowly(dest, source, bytes, pe, function, later);
}

// Releases: the data before it are visible to whoever sees the signal (acquire in the waits and tests).
inline void raise(std::uint64_t* word, std::uint64_t signal, int operation) {
    std::atomic_ref target(*word);
    if (operation == NPUSHMEM_SIGNAL_OP_SET)
        target.store(signal, std::memory_order_release);
    else
        target.fetch_add(signal, std::memory_order_release);
}

inline void put_signal(const char* function, void* dest, const void* source, std::uint64_t bytes,
                       std::uint64_t* signal_word, std::uint64_t signal, int operation, int pe, bool later) {
    void* target = fast.address(dest, bytes, pe);
    void* word = fast.address(signal_word, sizeof *signal_word, pe);
    const bool usable = word != nullptr && (target != nullptr || bytes == 0) && (source != nullptr || bytes == 0) &&
                        (operation == NPUSHMEM_SIGNAL_OP_SET || operation == NPUSHMEM_SIGNAL_OP_ADD) &&
                        reinterpret_cast<std::uintptr_t>(word) % sizeof *signal_word == 0;
    if (!usable) [[unlikely]]
        return put_signal_slowly(function, dest, source, bytes, signal_word, signal, operation, pe, later);
    if (bytes > 0) copy<untyped_unit>(target, source, bytes);
    raise(static_cast<std::uint64_t*>(word), signal, operation);
}

// The single-element forms' way out, by value: the fast path then needs no stack of its own.
template <class T>
[[gnu::noinline]] void p_slowly(T* dest, T value, int pe, const char* function) {
    put_slowly(dest, &value, sizeof value, pe, function, false);
}

template <class T>
[[gnu::noinline]] T g_slowly(const T* source, int pe, const char* function) {
    T value{};
    get_slowly(&value, source, sizeof value, pe, function, false);
    return value;
}

// Bytes from the first to the end of the last of `count` elements `stride` apart.
std::uint64_t extent(std::size_t count, std::ptrdiff_t stride, std::size_t size) {
    const std::uint64_t steps = byte_count(count - 1, static_cast<std::size_t>(stride));
    const std::uint64_t last = byte_count(steps, size);
    std::uint64_t bytes = 0;
    return __builtin_add_overflow(last, size, &bytes) ? byte_count(~std::size_t{0}, 2) : bytes;
}

// The strides' check, and the remote side's extent: reported at most once, before anything moves.
bool strided_ok(const char* function, const void* object, const void* local, std::ptrdiff_t object_stride,
                std::ptrdiff_t local_stride, std::size_t count, std::size_t size, int pe) {
    Runtime* up = runtime();
    Status checked = up != nullptr ? Status{} : not_running();
    if (checked.ok() && (object_stride < 1 || local_stride < 1))
        checked = {Code::argument, "strides must be at least 1; they are " + std::to_string(object_stride) +
                                       " at the PE and " + std::to_string(local_stride) + " here"};
    if (checked.ok() && count > 0 && local == nullptr) checked = {Code::argument, "the local array is NULL"};
    if (checked.ok() && count > 0)
        checked = check_object(*up, "the array", object, extent(count, object_stride, size), pe);
    if (!checked.ok()) fail(function, checked);
    return checked.ok() && count > 0;
}

template <class T>
void iput(const char* function, T* dest, const T* source, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t count,
          int pe) {
    if (!strided_ok(function, dest, source, dst, sst, count, sizeof(T), pe)) return;
    T* target = static_cast<T*>(fast.address(dest, pe));
    for (std::size_t i = 0; i < count; ++i, dest += dst, source += sst) {
        if (target != nullptr)
            target[static_cast<std::ptrdiff_t>(i) * dst] = *source;
        else
            put_slowly(dest, source, sizeof(T), pe, function, false);  // the source is the caller's again on return
    }
}

template <class T>
void iget(const char* function, T* dest, const T* source, std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t count,
          int pe) {
    if (!strided_ok(function, source, dest, sst, dst, count, sizeof(T), pe)) return;
    const T* target = static_cast<const T*>(fast.address(source, pe));
    for (std::size_t i = 0; i < count; ++i, dest += dst, source += sst) {
        if (target != nullptr)
            *dest = target[static_cast<std::ptrdiff_t>(i) * sst];
        else
            get_slowly(dest, source, sizeof(T), pe, function, false);
    }
}

// An element of the untyped strided forms.
template <std::size_t Bytes>
struct Block {
    std::byte bytes[Bytes];
};

}  // namespace

}  // namespace npushmem::api

using namespace npushmem::api;

extern "C" {

#define NPUSHMEM_DEFINE_RMA(NAME, TYPE)                                                                               \
    void npushmem_##NAME##_p(TYPE* dest, TYPE value, int pe) {                                                        \
        if (void* target = fast.address(dest, sizeof(TYPE), pe)) [[likely]]                                           \
            *static_cast<TYPE*>(target) = value;                                                                      \
        else                                                                                                          \
            p_slowly(dest, value, pe, __func__);                                                                      \
    }                                                                                                                 \
    TYPE npushmem_##NAME##_g(const TYPE* source, int pe) {                                                            \
        if (const void* target = fast.address(source, sizeof(TYPE), pe)) [[likely]]                                   \
            return *static_cast<const TYPE*>(target);                                                                 \
        return g_slowly(source, pe, __func__);                                                                        \
    }                                                                                                                 \
    void npushmem_##NAME##_put(TYPE* dest, const TYPE* source, size_t count, int pe) {                                \
        put<sizeof(TYPE)>(__func__, dest, source, byte_count(count, sizeof(TYPE)), pe, false);                        \
    }                                                                                                                 \
    void npushmem_##NAME##_get(TYPE* dest, const TYPE* source, size_t count, int pe) {                                \
        get<sizeof(TYPE)>(__func__, dest, source, byte_count(count, sizeof(TYPE)), pe, false);                        \
    }                                                                                                                 \
    void npushmem_##NAME##_put_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) {                            \
        put<sizeof(TYPE)>(__func__, dest, source, byte_count(count, sizeof(TYPE)), pe, true);                         \
    }                                                                                                                 \
    void npushmem_##NAME##_get_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) {                            \
        get<sizeof(TYPE)>(__func__, dest, source, byte_count(count, sizeof(TYPE)), pe, true);                         \
    }                                                                                                                 \
    void npushmem_##NAME##_iput(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe) { \
        iput(__func__, dest, source, dst, sst, count, pe);                                                            \
    }                                                                                                                 \
    void npushmem_##NAME##_iget(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe) { \
        iget(__func__, dest, source, dst, sst, count, pe);                                                            \
    }                                                                                                                 \
    void npushmem_##NAME##_put_signal(TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr,               \
                                      uint64_t signal, int sig_op, int pe) {                                          \
        put_signal(__func__, dest, source, byte_count(count, sizeof(TYPE)), sig_addr, signal, sig_op, pe, false);     \
    }                                                                                                                 \
    void npushmem_##NAME##_put_signal_nbi(TYPE* dest, const TYPE* source, size_t count, uint64_t* sig_addr,           \
                                          uint64_t signal, int sig_op, int pe) {                                      \
        put_signal(__func__, dest, source, byte_count(count, sizeof(TYPE)), sig_addr, signal, sig_op, pe, true);      \
    }
NPUSHMEM_FOR_EACH_RMA_TYPE(NPUSHMEM_DEFINE_RMA)

#define NPUSHMEM_DEFINE_SIZED(BITS, BYTES)                                                                          \
    void npushmem_put##BITS(void* dest, const void* source, size_t count, int pe) {                                 \
        put<BYTES>(__func__, dest, source, byte_count(count, BYTES), pe, false);                                    \
    }                                                                                                               \
    void npushmem_get##BITS(void* dest, const void* source, size_t count, int pe) {                                 \
        get<BYTES>(__func__, dest, source, byte_count(count, BYTES), pe, false);                                    \
    }                                                                                                               \
    void npushmem_put##BITS##_nbi(void* dest, const void* source, size_t count, int pe) {                           \
        put<BYTES>(__func__, dest, source, byte_count(count, BYTES), pe, true);                                     \
    }                                                                                                               \
    void npushmem_get##BITS##_nbi(void* dest, const void* source, size_t count, int pe) {                           \
        get<BYTES>(__func__, dest, source, byte_count(count, BYTES), pe, true);                                     \
    }                                                                                                               \
    void npushmem_iput##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe) {  \
        iput(__func__, static_cast<Block<BYTES>*>(dest), static_cast<const Block<BYTES>*>(source), dst, sst, count, \
             pe);                                                                                                   \
    }                                                                                                               \
    void npushmem_iget##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count, int pe) {  \
        iget(__func__, static_cast<Block<BYTES>*>(dest), static_cast<const Block<BYTES>*>(source), dst, sst, count, \
             pe);                                                                                                   \
    }                                                                                                               \
    void npushmem_put##BITS##_signal(void* dest, const void* source, size_t count, uint64_t* sig_addr,              \
                                     uint64_t signal, int sig_op, int pe) {                                         \
        put_signal(__func__, dest, source, byte_count(count, BYTES), sig_addr, signal, sig_op, pe, false);          \
    }                                                                                                               \
    void npushmem_put##BITS##_signal_nbi(void* dest, const void* source, size_t count, uint64_t* sig_addr,          \
                                         uint64_t signal, int sig_op, int pe) {                                     \
        put_signal(__func__, dest, source, byte_count(count, BYTES), sig_addr, signal, sig_op, pe, true);           \
    }
NPUSHMEM_FOR_EACH_SIZE(NPUSHMEM_DEFINE_SIZED)

void npushmem_putmem(void* dest, const void* source, size_t bytes, int pe) {
    put<untyped_unit>(__func__, dest, source, bytes, pe, false);
}
void npushmem_getmem(void* dest, const void* source, size_t bytes, int pe) {
    get<untyped_unit>(__func__, dest, source, bytes, pe, false);
}
void npushmem_putmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    put<untyped_unit>(__func__, dest, source, bytes, pe, true);
}
void npushmem_getmem_nbi(void* dest, const void* source, size_t bytes, int pe) {
    get<untyped_unit>(__func__, dest, source, bytes, pe, true);
}
void npushmem_putmem_signal(void* dest, const void* source, size_t bytes, uint64_t* sig_addr, uint64_t signal,
                            int sig_op, int pe) {
    put_signal(__func__, dest, source, bytes, sig_addr, signal, sig_op, pe, false);
}
void npushmem_putmem_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* sig_addr, uint64_t signal,
                                int sig_op, int pe) {
    put_signal(__func__, dest, source, bytes, sig_addr, signal, sig_op, pe, true);
}

}  // extern "C"
