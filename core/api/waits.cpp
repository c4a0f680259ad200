// wait_until, test and the signal forms: on the own memory, through the one waiting component.
#include <fmt/core.h>

#include <atomic>

#include "core/api/access.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

bool valid(int comparison) { return comparison >= NPUSHMEM_CMP_EQ && comparison <= NPUSHMEM_CMP_GE; }

const char* name_of_comparison(int comparison) {
    constexpr const char* names[] = {"equal to", "other than", "above", "of at most", "below", "of at least"};
    return names[comparison];
}

template <class T>
bool compares(T seen, int comparison, T value) {
    switch (comparison) {
        case NPUSHMEM_CMP_EQ: return seen == value;
        case NPUSHMEM_CMP_NE: return seen != value;
        case NPUSHMEM_CMP_GT: return seen > value;
        case NPUSHMEM_CMP_LE: return seen <= value;
        case NPUSHMEM_CMP_LT: return seen < value;
        default: return seen >= value;
    }
}

// Acquire: pairs with the release of the put_signal, atomic or fence by which the value came.
template <class T>
T load(T* object) {
    return std::atomic_ref<T>(*object).load(std::memory_order_acquire);
}

template <class T>
Status check_wait(const Runtime* up, T* object, int comparison) {
    if (up == nullptr) return not_running();
    if (!valid(comparison))
        return {Code::argument, fmt::format("comparison {} is none of NPUSHMEM_CMP_EQ to NPUSHMEM_CMP_GE", comparison)};
    Status checked = check_object(*up, "the object", object, sizeof(T), up->my_pe());
    if (checked.ok() && reinterpret_cast<std::uintptr_t>(object) % alignof(T) != 0)
        return {Code::argument, fmt::format("the object {} is not aligned to its size, {} bytes",
                                            static_cast<const void*>(object), sizeof(T))};
    return checked;
}

// Returns the last value seen, which satisfies the comparison unless a failure was reported.
template <class T>
T wait_until(const char* function, T* object, int comparison, T value) {
    Runtime* up = runtime();
    if (Status checked = check_wait(up, object, comparison); !checked.ok()) {
        fail(function, checked);
        return T{};
    }
    T seen{};
    // Any PE may be the one whose store is waited for, so the death of any ends the wait.
    const WaitFor what{
        .what = "a value in symmetric memory", .needs = {0, 1, up->npes()}, .timeout = up->settings().timeout};
    WaitFailure failure;
    const Code code =
        up->waiter().until([&] { return compares(seen = load(object), comparison, value); }, what, &failure);
    if (code != Code::ok)
        fail(function, {code, fmt::format("{}; it waits for a value {} {} and last saw {}", describe(what, failure),
                                          name_of_comparison(comparison), value, seen)});
    return seen;
}

template <class T>
int test(const char* function, T* object, int comparison, T value) {
    Runtime* up = runtime();
    if (Status checked = check_wait(up, object, comparison); !checked.ok()) {
        fail(function, checked);
        return 0;
    }
    if (compares(load(object), comparison, value)) return 1;
    // A program may loop over test alone: whatever brings the value must be driven from here.
    if (fast.all_mapped == 0)
        if (Status progressed = up->remote().progress(); !progressed.ok()) fail(function, progressed);
    if (compares(load(object), comparison, value)) return 1;
    up->waiter().give_way();
    return 0;
}

}  // namespace

}  // namespace npushmem::api

using namespace npushmem::api;

extern "C" {

#define NPUSHMEM_DEFINE_WAIT(NAME, TYPE)                                          \
    void npushmem_##NAME##_wait_until(TYPE* object, int comparison, TYPE value) { \
        (void)wait_until(__func__, object, comparison, value);                    \
    }                                                                             \
    int npushmem_##NAME##_test(TYPE* object, int comparison, TYPE value) {        \
        return test(__func__, object, comparison, value);                         \
    }
NPUSHMEM_FOR_EACH_ATOMIC_TYPE(NPUSHMEM_DEFINE_WAIT)

uint64_t npushmem_signal_wait_until(uint64_t* sig_addr, int comparison, uint64_t value) {
    return wait_until(__func__, sig_addr, comparison, value);
}

uint64_t npushmem_signal_fetch(const uint64_t* sig_addr) {
    const npushmem::Runtime* up = runtime();
    auto* word = const_cast<uint64_t*>(sig_addr);  // atomic_ref has no form for const objects in C++20; it is only read
    const npushmem::Status checked = check_wait(up, word, NPUSHMEM_CMP_EQ);
    if (checked.ok()) return load(word);
    fail(__func__, checked);
    return 0;
}

}  // extern "C"
