// SPDX-License-Identifier: BSD-3-Clause
// wait_until, test, their forms over many objects, and the signal forms: on this PE's memory, through the common
// waiter.
#include <fmt/core.h>

#include <atomic>
#include <cstdint>

#include "core/api/access.hpp"
#include "core/base/awaited_bytes.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

constexpr std::size_t nothing_found = SIZE_MAX;

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

// Acquire: pairs with the release of the put_signal, atomic or fence that brought the value.
template <class T>
T load(T* object) {
    return std::atomic_ref<T>(*object).load(std::memory_order_acquire);
}

// Lets the writers of these objects of this PE wake the wait.
AwaitedBytesParking parking_for(const Runtime& up, const void* objects, std::uint64_t bytes) {
    const MappedSlices& slices = up.slices();
    return {slices.host_memory().sleepers(), awaited_bytes_of(slices.heap().base()), slices.offset_of(objects), bytes};
}

template <class T>
Status check_wait(const Runtime* up, T* objects, int comparison, std::size_t count = 1) {
    if (up == nullptr) return not_running();
    if (!valid(comparison))
        return {Code::argument, fmt::format("comparison {}: expected NPUSHMEM_CMP_EQ to NPUSHMEM_CMP_GE", comparison)};
    Status checked = check_object(*up, "the object", objects, byte_count(count, sizeof(T)), up->my_pe());
    if (checked.ok() && reinterpret_cast<std::uintptr_t>(objects) % alignof(T) != 0)
        return {Code::argument, fmt::format("the object {} is not aligned to its size, {} bytes",
                                            static_cast<const void*>(objects), sizeof(T))};
    return checked;
}

// Returns the last value seen, which satisfies the comparison unless a failure was reported.
template <class T>
T wait_for(const char* function, T* object, int comparison, T value) {
    Runtime* up = runtime();
    if (Status checked = check_wait(up, object, comparison); !checked.ok()) {
        fail(function, checked);
        return T{};
    }
    T seen = load(object);
    if (compares(seen, comparison, value)) return seen;
    AwaitedBytesParking parking = parking_for(*up, object, sizeof(T));
    // Any PE may store the awaited value, so the death of any PE ends the wait, unless the program knows of it.
    const WaitFor what{.what = "a value in symmetric memory",
                       .needs = up->liveness().awaited_pes(),
                       .timeout = up->settings().timeout,
                       .parking = &parking,
                       .call = function,
                       .object = object};
    WaitFailure failure;
    const Code code =
        up->waiter().until([&] { return compares(seen = load(object), comparison, value); }, what, &failure);
    if (code != Code::ok)
        fail(function, {code, fmt::format("{}; it waits for a value {} {} and last saw {}", describe(what, failure),
                                          name_of_comparison(comparison), value, seen)});
    return seen;
}

// Several objects, without those that `status` excludes, each compared with its own value or with the same one.
template <class T>
struct Objects {
    T* first;
    std::size_t count;
    const int* status;
    int comparison;
    const T* values;
    std::size_t step;  // from one object's value to the next: 0 or 1

    [[nodiscard]] bool included(std::size_t i) const { return status == nullptr || status[i] == 0; }
    [[nodiscard]] bool holds(std::size_t i) const { return compares(load(first + i), comparison, values[i * step]); }
    [[nodiscard]] bool empty() const {
        for (std::size_t i = 0; i < count; ++i)
            if (included(i)) return false;
        return true;
    }
    [[nodiscard]] bool all() const {
        for (std::size_t i = 0; i < count; ++i)
            if (included(i) && !holds(i)) return false;
        return true;
    }
    // Returns the first object that satisfies the comparison at or after `begin`, cyclically; nothing_found if none
    // does.
    [[nodiscard]] std::size_t any(std::size_t begin) const {
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = begin < count - k ? begin + k : begin + k - count;
            if (included(i) && holds(i)) return i;
        }
        return nothing_found;
    }
    std::size_t some(std::size_t* indices) const {
        std::size_t found = 0;
        for (std::size_t i = 0; i < count; ++i)
            if (included(i) && holds(i)) indices[found++] = i;
        return found;
    }
};

// Each call of `any` begins after the last find, so that repeated calls reach every object.
std::size_t& next_begin() {
    thread_local std::size_t begin = 0;
    return begin;
}

template <class T>
std::size_t find_any(const Objects<T>& objects) {
    std::size_t& begin = next_begin();
    const std::size_t found = objects.any(begin < objects.count ? begin : 0);
    if (found != nothing_found) begin = found + 1;
    return found;
}

// Checks the arguments; returns false also if there is nothing to test.
template <class T>
bool usable(const char* function, const Objects<T>& objects, const std::size_t* indices) {
    if (runtime() != nullptr && valid(objects.comparison) && objects.count == 0) return false;
    Status checked = check_wait(runtime(), objects.first, objects.comparison, objects.count);
    if (checked.ok() && objects.values == nullptr) checked = {Code::argument, "the array of values is NULL"};
    if (checked.ok() && indices == nullptr) checked = {Code::argument, "indices is NULL"};
    if (!checked.ok()) fail(function, checked);
    return checked.ok() && !objects.empty();
}

constexpr std::size_t no_indices = 0;  // for the forms without indices

// Waits until `found` returns true; reports a failure.
template <class T, class Found>
bool wait_among(const char* function, const Objects<T>& objects, Found&& found) {
    Runtime* up = runtime();
    AwaitedBytesParking parking = parking_for(*up, objects.first, byte_count(objects.count, sizeof(T)));
    const WaitFor what{.what = "values in symmetric memory",
                       .needs = up->liveness().awaited_pes(),
                       .timeout = up->settings().timeout,
                       .parking = &parking,
                       .call = function,
                       .object = objects.first};
    WaitFailure failure;
    const Code code = up->waiter().until(found, what, &failure);
    if (code != Code::ok)
        fail(function, {code, fmt::format("{}; it waits for values {} given ones in {} objects at {}",
                                          describe(what, failure), name_of_comparison(objects.comparison),
                                          objects.count, static_cast<const void*>(objects.first))});
    return code == Code::ok;
}

// Tests, makes progress, and tests again: a program may loop over a test alone.
template <class Found>
bool test_with_progress(const char* function, Found&& found) {
    if (found()) return true;
    Runtime* up = runtime();
    if (up->slices().fast_map().all_mapped == 0)
        if (Status progressed = up->transports().remote().progress(); !progressed.ok()) fail(function, progressed);
    if (found()) return true;
    up->waiter().yield_if_oversubscribed();
    return false;
}

template <class T>
void wait_all(const char* function, const Objects<T>& objects) {
    if (usable(function, objects, &no_indices)) (void)wait_among(function, objects, [&] { return objects.all(); });
}

template <class T>
std::size_t wait_any(const char* function, const Objects<T>& objects) {
    std::size_t found = nothing_found;
    if (usable(function, objects, &no_indices))
        (void)wait_among(function, objects, [&] { return (found = find_any(objects)) != nothing_found; });
    return found;
}

template <class T>
std::size_t wait_some(const char* function, const Objects<T>& objects, std::size_t* indices) {
    std::size_t found = 0;
    if (usable(function, objects, indices))
        (void)wait_among(function, objects, [&] { return (found = objects.some(indices)) != 0; });
    return found;
}

template <class T>
int test_whether_all(const char* function, const Objects<T>& objects) {
    if (!usable(function, objects, &no_indices)) return runtime() != nullptr && objects.empty() ? 1 : 0;
    return test_with_progress(function, [&] { return objects.all(); }) ? 1 : 0;
}

template <class T>
std::size_t test_for_any(const char* function, const Objects<T>& objects) {
    std::size_t found = nothing_found;
    if (usable(function, objects, &no_indices))
        (void)test_with_progress(function, [&] { return (found = find_any(objects)) != nothing_found; });
    return found;
}

template <class T>
std::size_t test_for_some(const char* function, const Objects<T>& objects, std::size_t* indices) {
    std::size_t found = 0;
    if (usable(function, objects, indices))
        (void)test_with_progress(function, [&] { return (found = objects.some(indices)) != 0; });
    return found;
}

}  // namespace

// The functions of the tables, by their names there.
template <class T>
void wait_until(const char* function, T* object, int comparison, T value) {
    (void)wait_for(function, object, comparison, value);
}

template <class T>
int test(const char* function, T* object, int comparison, T value) {
    if (Status checked = check_wait(runtime(), object, comparison); !checked.ok()) {
        fail(function, checked);
        return 0;
    }
    return test_with_progress(function, [&] { return compares(load(object), comparison, value); }) ? 1 : 0;
}

// Deprecated: waits until the object differs from `value`.
template <class T>
void wait(const char* function, T* object, T value) {
    (void)wait_for(function, object, NPUSHMEM_CMP_NE, value);
}

#define NPUSHMEM_OVER_MANY(RET, FORM, CALL)                                                                     \
    template <class T>                                                                                          \
    RET FORM(const char* function, T* objects, std::size_t count, const int* status, int comparison, T value) { \
        return CALL(function, Objects<T>{objects, count, status, comparison, &value, 0});                       \
    }                                                                                                           \
    template <class T>                                                                                          \
    RET FORM##_vector(const char* function, T* objects, std::size_t count, const int* status, int comparison,   \
                      const T* values) {                                                                        \
        return CALL(function, Objects<T>{objects, count, status, comparison, values, 1});                       \
    }
#define NPUSHMEM_OVER_SOME(FORM, CALL)                                                                             \
    template <class T>                                                                                             \
    std::size_t FORM(const char* function, T* objects, std::size_t count, std::size_t* indices, const int* status, \
                     int comparison, T value) {                                                                    \
        return CALL(function, Objects<T>{objects, count, status, comparison, &value, 0}, indices);                 \
    }                                                                                                              \
    template <class T>                                                                                             \
    std::size_t FORM##_vector(const char* function, T* objects, std::size_t count, std::size_t* indices,           \
                              const int* status, int comparison, const T* values) {                                \
        return CALL(function, Objects<T>{objects, count, status, comparison, values, 1}, indices);                 \
    }
NPUSHMEM_OVER_MANY(void, wait_until_all, wait_all)
NPUSHMEM_OVER_MANY(std::size_t, wait_until_any, wait_any)
NPUSHMEM_OVER_SOME(wait_until_some, wait_some)
NPUSHMEM_OVER_MANY(int, test_all, test_whether_all)
NPUSHMEM_OVER_MANY(std::size_t, test_any, test_for_any)
NPUSHMEM_OVER_SOME(test_some, test_for_some)
#undef NPUSHMEM_OVER_MANY
#undef NPUSHMEM_OVER_SOME

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/waits.h"
#include "core/api/definitions.hpp"
#undef NPUSHMEM_ONLY
#define NPUSHMEM_ONLY "npushmem/functions/deprecated.h"
#include "core/api/definitions.hpp"

using namespace npushmem::api;

extern "C" {

void npushmem_wait(long* object, long value) { (void)wait_for(__func__, object, NPUSHMEM_CMP_NE, value); }

void npushmem_wait_until(long* object, int comparison, long value) {
    (void)wait_for(__func__, object, comparison, value);
}

uint64_t npushmem_signal_wait_until(uint64_t* sig_addr, int comparison, uint64_t value) {
    return wait_for(__func__, sig_addr, comparison, value);
}

uint64_t npushmem_signal_fetch(const uint64_t* sig_addr) {
    auto* word = const_cast<uint64_t*>(sig_addr);  // atomic_ref has no form for const objects in C++20; it is only read
    // The word is this PE's, whatever this PE maps: the first mapped PE stands for the checks. As in npushmem/inline.h.
    if (reinterpret_cast<std::uintptr_t>(word) % sizeof *word == 0 &&
        fast.address(word, sizeof *word, static_cast<int>(fast.first_pe)) != nullptr) [[likely]]
        return load(word);
    const int code = run_call(__func__, [word] { return check_wait(runtime(), word, NPUSHMEM_CMP_EQ); });
    return code == 0 ? load(word) : 0;
}

}  // extern "C"
