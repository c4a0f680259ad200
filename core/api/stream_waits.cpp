// SPDX-License-Identifier: BSD-3-Clause
// Waits for values of every type in the order of a stream. A waiting launch lets others run.
#include <fmt/core.h>

#include <atomic>
#include <functional>

#include "core/api/access.hpp"
#include "core/api/stream_queue.hpp"
#include "core/npu/runner.hpp"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

template <class T>
bool compares(T seen, npu::Compare compare, T value) {
    switch (compare) {
        case npu::Compare::equal: return seen == value;
        case npu::Compare::not_equal: return seen != value;
        case npu::Compare::greater: return seen > value;
        case npu::Compare::greater_equal: return seen >= value;
        case npu::Compare::less: return seen < value;
        default: return seen <= value;
    }
}

// Objects without those that `status` excludes, each compared with its own value, or all with `value` if `values` is
// null.
template <class T>
struct AwaitedObjects {
    T* first;
    std::size_t count;
    const int* status;
    npu::Compare compare;
    T value;
    const T* values;

    [[nodiscard]] bool holds(std::size_t i) const {
        if (status != nullptr && status[i] != 0) return true;
        // Acquire: pairs with the release of the put_signal, atomic or fence that brought the value.
        const T seen = std::atomic_ref<T>(first[i]).load(std::memory_order_acquire);
        return compares(seen, compare, values != nullptr ? values[i] : value);
    }
    [[nodiscard]] bool all_hold() const {
        std::size_t i = 0;
        while (i < count && holds(i)) ++i;
        return i == count;
    }
};

Status check_objects(const void* objects, std::size_t count, std::size_t size) {
    const Runtime* up = runtime();
    if (up == nullptr) return not_running();
    if (count == 0) return {};
    Status checked = check_object(*up, "the object", objects, byte_count(count, size), up->my_pe());
    if (checked.ok() && reinterpret_cast<std::uintptr_t>(objects) % size != 0)
        return {Code::argument, fmt::format("the object {} is not aligned to its size, {} bytes", objects, size)};
    return checked;
}

void await(npu::Core& core, const std::function<bool()>& ready) {
    if (!ready()) {
        if (core.hooks() != nullptr) core.hooks()->before_wait();
        npu::detail::CoreContext& context = *core.context();
        npu::detail::WaitPredicate predicate{ready, "the update of a value in symmetric memory", -1};
        if (Status done = context.runner->await_predicate(context, predicate, no_line); !done.ok())
            throw npu::KernelError(done);
    }
    // For the kernel checker: what brought the value is ordered before what follows.
    (void)runtime();
}

template <class T>
int queue_wait(const char* function, npushmemx_stream_t stream, AwaitedObjects<T> objects, int comparison) {
    return code_of_call(function, [&] {
        const auto compare = compare_of(comparison);
        Status checked = compare.ok() ? check_objects(objects.first, objects.count, sizeof(T)) : compare.status();
        if (!checked.ok()) return checked;
        objects.compare = compare.value();
        return launch_call(function, stream,
                           [objects](npu::Core& core) { await(core, [&] { return objects.all_hold(); }); });
    });
}

}  // namespace

// The functions of the table, by their names there.
template <class T>
int wait_until_on_stream(const char* function, T* object, int comparison, T value, npushmemx_stream_t stream) {
    return queue_wait<T>(function, stream, {object, 1, nullptr, {}, value, nullptr}, comparison);
}

template <class T>
int wait_until_all_on_stream(const char* function, T* objects, std::size_t count, const int* status, int comparison,
                             T value, npushmemx_stream_t stream) {
    return queue_wait<T>(function, stream, {objects, count, status, {}, value, nullptr}, comparison);
}

template <class T>
int wait_until_all_vector_on_stream(const char* function, T* objects, std::size_t count, const int* status,
                                    int comparison, const T* values, npushmemx_stream_t stream) {
    if (values == nullptr && count != 0)
        return code_of_call(function, [] { return Status{Code::argument, "the array of values is NULL"}; });
    return queue_wait<T>(function, stream, {objects, count, status, {}, T{}, values}, comparison);
}

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/stream_waits.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
