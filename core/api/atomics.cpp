// SPDX-License-Identifier: BSD-3-Clause
// Atomics of every type, expanded from the tables of npushmem/types.h. On mapped memory they are the CPU's atomics,
// with relaxed order as the standard allows, except that a fetch acquires what the observed update released.
#include <atomic>
#include <concepts>
#include <cstring>

#include "core/api/access.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

template <class T>
constexpr std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
npushmem_atomic operation_on(std::uint8_t operation, T operand, T compare, T* result) {
    npushmem_atomic op{};
    op.operation = operation;
    op.width = sizeof(T);
    op.operand = bits_of(operand);
    op.compare = bits_of(compare);
    op.result = result;
    return op;
}

// The form of each operation on mapped memory, and its number for transports. All operations but fetch and set have a
// form that fetches (fetching) and one that does not (updating).
constexpr auto acq_rel = std::memory_order_acq_rel;

struct Fetch {
    static constexpr std::uint8_t fetching = NPUSHMEM_ATOMIC_FETCH;
    template <class T>
    static T on(std::atomic_ref<T> target, T, T) {
        return target.load(std::memory_order_acquire);
    }
};
struct Swap {
    static constexpr std::uint8_t fetching = NPUSHMEM_ATOMIC_SWAP;
    template <class T>
    static T on(std::atomic_ref<T> target, T value, T) {
        return target.exchange(value, acq_rel);
    }
};
struct CompareSwap {
    static constexpr std::uint8_t fetching = NPUSHMEM_ATOMIC_COMPARE_SWAP;
    // Returns the old value, whether it was replaced or not.
    template <class T>
    static T on(std::atomic_ref<T> target, T value, T expected) {
        (void)target.compare_exchange_strong(expected, value, acq_rel);
        return expected;
    }
};
struct Set {
    static constexpr std::uint8_t updating = NPUSHMEM_ATOMIC_SET;
    template <class T>
    static T on(std::atomic_ref<T> target, T value, T) {
        target.store(value, std::memory_order_release);
        return value;
    }
};
#define NPUSHMEM_OPERATION(CLASS, WORD, FETCHING, UPDATING)  \
    struct CLASS {                                           \
        static constexpr std::uint8_t fetching = FETCHING;   \
        static constexpr std::uint8_t updating = UPDATING;   \
        template <class T>                                   \
        static T on(std::atomic_ref<T> target, T value, T) { \
            return target.fetch_##WORD(value, acq_rel);      \
        }                                                    \
    };
NPUSHMEM_OPERATION(Add, add, NPUSHMEM_ATOMIC_FETCH_ADD, NPUSHMEM_ATOMIC_ADD)
NPUSHMEM_OPERATION(And, and, NPUSHMEM_ATOMIC_FETCH_AND, NPUSHMEM_ATOMIC_AND)
NPUSHMEM_OPERATION(Or, or, NPUSHMEM_ATOMIC_FETCH_OR, NPUSHMEM_ATOMIC_OR)
NPUSHMEM_OPERATION(Xor, xor, NPUSHMEM_ATOMIC_FETCH_XOR, NPUSHMEM_ATOMIC_XOR)
#undef NPUSHMEM_OPERATION

template <class T>
[[gnu::noinline]] T fetch_slow_path(const Context& context, const char* function, std::uint8_t operation,
                                    const T* object, T operand, T compare, int pe) {
    T old{};
    atomic_slow_path(context, function, object, operation_on(operation, operand, compare, &old), pe, false);
    return old;
}

template <class T>
[[gnu::noinline]] void fetch_nbi_slow_path(const Context& context, const char* function, std::uint8_t operation,
                                           T* fetch, const T* object, T operand, T compare, int pe) {
    atomic_slow_path(context, function, object, operation_on(operation, operand, compare, fetch), pe, true);
}

template <class T>
[[gnu::noinline]] void update_slow_path(const Context& context, const char* function, std::uint8_t operation,
                                        const T* object, T operand, int pe) {
    atomic_slow_path(context, function, object, operation_on<T>(operation, operand, T{}, nullptr), pe, true);
}

// No transport adds floating-point numbers: repeats compare-and-swap until no other update comes between. Compares
// bits, so that NaN ends the loop too. The first attempt expects 0, so that it needs no fetch before.
template <std::floating_point T>
[[gnu::noinline]] T add_slow_path(const Context& context, const char* function, const T* object, T operand, int pe) {
    T expected{};
    for (;;) {
        T old{};
        const auto swap = operation_on<T>(NPUSHMEM_ATOMIC_COMPARE_SWAP, expected + operand, expected, &old);
        if (!atomic_slow_path(context, function, object, swap, pe, false)) return T{};
        if (bits_of(old) == bits_of(expected)) return old;
        expected = old;
    }
}

// Returns the result of the operation if the PE is mapped and the object is aligned, or otherwise(), which may report a
// failure. (Slices are aligned to more than any type, so the local address suffices for the check.)
template <class Operation, class T, class Otherwise>
[[gnu::always_inline]] inline T on_mapped(const Context& context, const T* object, T operand, T compare, int pe,
                                          Otherwise&& otherwise) {
    if (reinterpret_cast<std::uintptr_t>(object) % sizeof(T) != 0) [[unlikely]]
        return otherwise();
    const auto update = [&](void* target, std::byte* slice) {
        // Before the operation: a locked instruction delays later loads.
        const bool is_awaited = !std::is_same_v<Operation, Fetch> && context.map.has_sleepers();
        const T result = Operation::on(std::atomic_ref(*static_cast<T*>(target)), operand, compare);
        if (is_awaited) [[unlikely]]
            wake_pe(slice, target, sizeof(T));
        return result;
    };
    return context.map.access(object, sizeof(T), pe, update, otherwise);
}

template <std::floating_point T>
[[gnu::always_inline]] inline T add(const Context& context, const char* function, T* object, T operand, int pe) {
    return on_mapped<Add, T>(context, object, operand, T{}, pe,
                             [&] { return add_slow_path(context, function, object, operand, pe); });
}

template <class Operation, class T>
[[gnu::always_inline]] inline T fetching(const Context& context, const char* function, const T* object, T operand,
                                         T compare, int pe) {
    return on_mapped<Operation, T>(context, object, operand, compare, pe, [&] {
        return fetch_slow_path<T>(context, function, Operation::fetching, object, operand, compare, pe);
    });
}

template <class Operation, class T>
[[gnu::always_inline]] inline void fetching_nbi(const Context& context, const char* function, T* fetch, const T* object,
                                                T operand, T compare, int pe) {
    if (fetch == nullptr) [[unlikely]]
        return fail(function, {Code::argument, "fetch is NULL"});
    bool is_done = true;
    const T old = on_mapped<Operation, T>(context, object, operand, compare, pe, [&] {
        is_done = false;
        fetch_nbi_slow_path<T>(context, function, Operation::fetching, fetch, object, operand, compare, pe);
        return T{};
    });
    if (is_done) *fetch = old;
}

template <class Operation, class T>
[[gnu::always_inline]] inline void updating(const Context& context, const char* function, T* object, T operand,
                                            int pe) {
    (void)on_mapped<Operation, T>(context, object, operand, T{}, pe, [&] {
        update_slow_path<T>(context, function, Operation::updating, object, operand, pe);
        return T{};
    });
}

}  // namespace

// The functions of the tables, by their names there.
template <class T>
inline T atomic_fetch(const Context& context, const char* function, const T* source, int pe) {
    return fetching<Fetch, T>(context, function, source, T{}, T{}, pe);
}
template <class T>
inline void atomic_fetch_nbi(const Context& context, const char* function, T* fetch, const T* source, int pe) {
    fetching_nbi<Fetch, T>(context, function, fetch, source, T{}, T{}, pe);
}
template <class T>
inline void atomic_set(const Context& context, const char* function, T* dest, T value, int pe) {
    updating<Set, T>(context, function, dest, value, pe);
}
template <class T>
inline T atomic_compare_swap(const Context& context, const char* function, T* dest, T cond, T value, int pe) {
    return fetching<CompareSwap, T>(context, function, dest, value, cond, pe);
}
template <class T>
inline void atomic_compare_swap_nbi(const Context& context, const char* function, T* fetch, T* dest, T cond, T value,
                                    int pe) {
    fetching_nbi<CompareSwap, T>(context, function, fetch, dest, value, cond, pe);
}
template <class T>
inline T atomic_fetch_inc(const Context& context, const char* function, T* dest, int pe) {
    return fetching<Add, T>(context, function, dest, T{1}, T{}, pe);
}
template <class T>
inline void atomic_fetch_inc_nbi(const Context& context, const char* function, T* fetch, T* dest, int pe) {
    fetching_nbi<Add, T>(context, function, fetch, dest, T{1}, T{}, pe);
}
template <class T>
inline void atomic_inc(const Context& context, const char* function, T* dest, int pe) {
    updating<Add, T>(context, function, dest, T{1}, pe);
}

#define NPUSHMEM_FETCHING(CLASS, FETCHING)                                                                         \
    template <class T>                                                                                             \
    inline T FETCHING(const Context& context, const char* function, T* dest, T value, int pe) {                    \
        return fetching<CLASS, T>(context, function, dest, value, T{}, pe);                                        \
    }                                                                                                              \
    template <class T>                                                                                             \
    inline void FETCHING##_nbi(const Context& context, const char* function, T* fetch, T* dest, T value, int pe) { \
        fetching_nbi<CLASS, T>(context, function, fetch, dest, value, T{}, pe);                                    \
    }
#define NPUSHMEM_BOTH(CLASS, WORD)                                                                      \
    NPUSHMEM_FETCHING(CLASS, atomic_fetch_##WORD)                                                       \
    template <class T>                                                                                  \
    inline void atomic_##WORD(const Context& context, const char* function, T* dest, T value, int pe) { \
        updating<CLASS, T>(context, function, dest, value, pe);                                         \
    }
NPUSHMEM_FETCHING(Swap, atomic_swap)
NPUSHMEM_BOTH(Add, add)
NPUSHMEM_BOTH(And, and)
NPUSHMEM_BOTH(Or, or)
NPUSHMEM_BOTH(Xor, xor)
#undef NPUSHMEM_FETCHING
#undef NPUSHMEM_BOTH

// More constrained than the functions above, so that the compiler prefers them.
template <std::floating_point T>
inline T atomic_fetch_add(const Context& context, const char* function, T* dest, T value, int pe) {
    return add(context, function, dest, value, pe);
}
template <std::floating_point T>
inline void atomic_add(const Context& context, const char* function, T* dest, T value, int pe) {
    (void)add(context, function, dest, value, pe);
}
template <std::floating_point T>
inline void atomic_fetch_add_nbi(const Context& context, const char* function, T* fetch, T* dest, T value, int pe) {
    if (fetch == nullptr) return fail(function, {Code::argument, "fetch is NULL"});
    *fetch = add(context, function, dest, value, pe);
}

// The same as the atomics of uint64_t, with their own names in reports.
inline void signal_set(const Context& context, const char* function, std::uint64_t* word, std::uint64_t signal,
                       int pe) {
    updating<Set, std::uint64_t>(context, function, word, signal, pe);
}
inline void signal_add(const Context& context, const char* function, std::uint64_t* word, std::uint64_t signal,
                       int pe) {
    updating<Add, std::uint64_t>(context, function, word, signal, pe);
}

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/atomics.h"
#include "core/api/definitions.hpp"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_ONLY "npushmem/functions/float_atomics.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
