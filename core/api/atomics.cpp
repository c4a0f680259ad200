// Atomics of every type, expanded from the tables of npushmem/types.h. On mapped memory they are the CPU's own; the
// order is relaxed as the standard allows, except that a fetch acquires what the update it sees released.
#include <atomic>
#include <cstring>

#include "core/api/access.hpp"
#include "npushmem.h"

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

// The object on `pe` as an atomic, or null: also where it is not aligned, for the slow path to say so. (Slices are
// aligned to more than any type, so the own address tells.)
template <class T>
T* target_of(const T* object, int pe) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(object) % sizeof(T) == 0;
    return aligned ? static_cast<T*>(fast.address(object, pe)) : nullptr;
}

template <class T>
T fetching(const char* function, std::uint8_t operation, const T* object, T operand, T compare, int pe) {
    T old{};
    atomic_slowly(function, object, operation_on(operation, operand, compare, &old), pe, false);
    return old;
}

template <class T>
void updating(const char* function, std::uint8_t operation, const T* object, T operand, int pe) {
    atomic_slowly(function, object, operation_on<T>(operation, operand, T{}, nullptr), pe, true);
}

template <class T>
void fetching_later(const char* function, std::uint8_t operation, T* fetch, const T* object, T operand, T compare,
                    int pe) {
    if (fetch == nullptr) return fail(function, {Code::argument, "fetch is NULL"});
    atomic_slowly(function, object, operation_on(operation, operand, compare, fetch), pe, true);
}

}  // namespace

}  // namespace npushmem::api

using namespace npushmem::api;

// A fetching operation and its _nbi form: MAPPED is the expression on `target`, an atomic_ref of the mapped object.
#define NPUSHMEM_DEFINE_FETCHING(FUNCTION, TYPE, OPERATION, OBJECT, OPERAND, COMPARE, MAPPED, PARAMETERS, ...) \
    TYPE FUNCTION PARAMETERS {                                                                                 \
        if (TYPE* object = target_of(OBJECT, pe)) [[likely]] {                                                 \
            std::atomic_ref<TYPE> target(*object);                                                             \
            return MAPPED;                                                                                     \
        }                                                                                                      \
        return fetching<TYPE>(__func__, OPERATION, OBJECT, OPERAND, COMPARE, pe);                              \
    }                                                                                                          \
    void FUNCTION##_nbi(TYPE* fetch, __VA_ARGS__) {                                                            \
        TYPE* object = target_of(OBJECT, pe);                                                                  \
        if (object == nullptr || fetch == nullptr) [[unlikely]]                                                \
            return fetching_later<TYPE>(__func__, OPERATION, fetch, OBJECT, OPERAND, COMPARE, pe);             \
        std::atomic_ref<TYPE> target(*object);                                                                 \
        *fetch = MAPPED;                                                                                       \
    }

#define NPUSHMEM_DEFINE_UPDATING(FUNCTION, TYPE, OPERATION, OPERAND, MAPPED, PARAMETERS) \
    void FUNCTION PARAMETERS {                                                           \
        if (TYPE* object = target_of(dest, pe)) [[likely]] {                             \
            std::atomic_ref<TYPE> target(*object);                                       \
            MAPPED;                                                                      \
        } else {                                                                         \
            updating<TYPE>(__func__, OPERATION, dest, OPERAND, pe);                      \
        }                                                                                \
    }

namespace {

// compare_exchange in the shape of the API: the old value, whether it was replaced or not.
template <class T>
T compare_swap(std::atomic_ref<T> target, T expected, T value) {
    (void)target.compare_exchange_strong(expected, value, std::memory_order_acq_rel);
    return expected;
}

constexpr auto acq_rel = std::memory_order_acq_rel;

}  // namespace

extern "C" {

#define NPUSHMEM_DEFINE_EXTENDED_ATOMIC(NAME, TYPE)                                                                    \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_fetch, TYPE, NPUSHMEM_ATOMIC_FETCH, source,                      \
                             static_cast<TYPE>(0), static_cast<TYPE>(0), target.load(std::memory_order_acquire),       \
                             (const TYPE* source, int pe), const TYPE* source, int pe)                                 \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_swap, TYPE, NPUSHMEM_ATOMIC_SWAP, dest, value,                   \
                             static_cast<TYPE>(0), target.exchange(value, acq_rel), (TYPE * dest, TYPE value, int pe), \
                             TYPE* dest, TYPE value, int pe)                                                           \
    NPUSHMEM_DEFINE_UPDATING(npushmem_##NAME##_atomic_set, TYPE, NPUSHMEM_ATOMIC_SET, value,                           \
                             target.store(value, std::memory_order_release), (TYPE * dest, TYPE value, int pe))
NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(NPUSHMEM_DEFINE_EXTENDED_ATOMIC)

#define NPUSHMEM_DEFINE_ATOMIC(NAME, TYPE)                                                                           \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_compare_swap, TYPE, NPUSHMEM_ATOMIC_COMPARE_SWAP, dest, value, \
                             cond, compare_swap(target, cond, value), (TYPE * dest, TYPE cond, TYPE value, int pe),  \
                             TYPE* dest, TYPE cond, TYPE value, int pe)                                              \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_fetch_inc, TYPE, NPUSHMEM_ATOMIC_FETCH_ADD, dest,              \
                             static_cast<TYPE>(1), static_cast<TYPE>(0),                                             \
                             target.fetch_add(static_cast<TYPE>(1), acq_rel), (TYPE * dest, int pe), TYPE* dest,     \
                             int pe)                                                                                 \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_fetch_add, TYPE, NPUSHMEM_ATOMIC_FETCH_ADD, dest, value,       \
                             static_cast<TYPE>(0), target.fetch_add(value, acq_rel),                                 \
                             (TYPE * dest, TYPE value, int pe), TYPE* dest, TYPE value, int pe)                      \
    NPUSHMEM_DEFINE_UPDATING(npushmem_##NAME##_atomic_inc, TYPE, NPUSHMEM_ATOMIC_ADD, static_cast<TYPE>(1),          \
                             target.fetch_add(static_cast<TYPE>(1), acq_rel), (TYPE * dest, int pe))                 \
    NPUSHMEM_DEFINE_UPDATING(npushmem_##NAME##_atomic_add, TYPE, NPUSHMEM_ATOMIC_ADD, value,                         \
                             target.fetch_add(value, acq_rel), (TYPE * dest, TYPE value, int pe))
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_DEFINE_ATOMIC)

#define NPUSHMEM_DEFINE_ONE_BITWISE(NAME, TYPE, WORD, FETCHING, UPDATING)                                              \
    NPUSHMEM_DEFINE_FETCHING(npushmem_##NAME##_atomic_fetch_##WORD, TYPE, FETCHING, dest, value, static_cast<TYPE>(0), \
                             target.fetch_##WORD(value, acq_rel), (TYPE * dest, TYPE value, int pe), TYPE* dest,       \
                             TYPE value, int pe)                                                                       \
    NPUSHMEM_DEFINE_UPDATING(npushmem_##NAME##_atomic_##WORD, TYPE, UPDATING, value,                                   \
                             target.fetch_##WORD(value, acq_rel), (TYPE * dest, TYPE value, int pe))

#define NPUSHMEM_DEFINE_BITWISE(NAME, TYPE)                                                      \
    NPUSHMEM_DEFINE_ONE_BITWISE(NAME, TYPE, and, NPUSHMEM_ATOMIC_FETCH_AND, NPUSHMEM_ATOMIC_AND) \
    NPUSHMEM_DEFINE_ONE_BITWISE(NAME, TYPE, or, NPUSHMEM_ATOMIC_FETCH_OR, NPUSHMEM_ATOMIC_OR)    \
    NPUSHMEM_DEFINE_ONE_BITWISE(NAME, TYPE, xor, NPUSHMEM_ATOMIC_FETCH_XOR, NPUSHMEM_ATOMIC_XOR)
NPUSHMEM_FOR_EACH_BITWISE_TYPE(NPUSHMEM_DEFINE_BITWISE)

// As the atomics of uint64_t, under names of their own for what they report.
NPUSHMEM_DEFINE_UPDATING(npushmem_signal_set, uint64_t, NPUSHMEM_ATOMIC_SET, signal,
                         target.store(signal, std::memory_order_release), (uint64_t * dest, uint64_t signal, int pe))
NPUSHMEM_DEFINE_UPDATING(npushmem_signal_add, uint64_t, NPUSHMEM_ATOMIC_ADD, signal, target.fetch_add(signal, acq_rel),
                         (uint64_t * dest, uint64_t signal, int pe))

}  // extern "C"
