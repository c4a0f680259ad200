// SPDX-License-Identifier: BSD-3-Clause
// Core's UB allocation, scalar accesses, remote memory, signals and atomics. Included by core.hpp only.
#pragma once

#include <utility>

#include "npushmem/npu/core.hpp"

namespace npushmem::npu {

namespace detail {

// The thread sanitizer does not support fences: in its builds only the acquire and release accesses of the signals
// provide order.
inline void order_stores() {
#if defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_acq_rel);
#else
    // Pairs with order_stores (dcci, fence) of the next core that reads or writes the published data.
    std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
}

inline void complete_stores() {
#if defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    // Pairs with quiet of another PE: if two PEs store, quiet and then load, at least one sees the other's store.
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Convert the operand of an atomic to and from the transports' 64-bit form.
template <class T>
std::uint64_t to_bits(T value) {
    return static_cast<std::make_unsigned_t<T>>(value);
}
template <class T>
T from_bits(std::uint64_t bits) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
}

template <class T>
std::uint64_t bits_of(const T& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

// Pairs with the release in signal_set and signal_add.
inline std::uint64_t acquire_word(const std::uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

}  // namespace detail

inline std::uint64_t Core::cycles() const {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

template <class T>
inline ub_view<T> Core::ub_alloc(std::size_t count, const Where& where) {
    const std::size_t offset = ub_used_;
    std::byte* begin = ub_take(offset, count, sizeof(T), false, where);
    ub_used_ = (offset + count * sizeof(T) + ub_alignment - 1) / ub_alignment * ub_alignment;
    return {reinterpret_cast<T*>(begin), count};
}

template <class T>
inline ub_view<T> Core::ub_at(std::size_t offset, std::size_t count, const Where& where) {
    return {reinterpret_cast<T*>(ub_take(offset, count, sizeof(T), true, where)), count};
}

inline void Core::ub_release(std::size_t mark) {
    if (mark >= ub_used_) return;
    ub_used_ = mark;
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->ub_released(mark);
}

inline std::byte* Core::ub_take(std::size_t offset, std::size_t count, std::size_t element, bool placed,
                                const Where& where) {
    const detail::UbRegion& ub = state_.ub;
    const bool fits = offset <= ub.bytes && count <= (ub.bytes - offset) / element && offset % ub_alignment == 0;
    if (!fits) [[unlikely]]
        detail::fail_ub(count <= SIZE_MAX / element ? count * element : SIZE_MAX, offset, ub, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->ub_allocated(offset, count * element, placed, where);
    return ub.base + offset;
}

template <class T>
inline void Core::check_scalar(const char* operation, const T* address, const Where& where) const {
    if (detail::number_of(address) % sizeof(T) != 0 || address == nullptr) [[unlikely]] {
        detail::fail_scalar(operation, address, sizeof(T), where);
    }
}

template <Scalar T>
inline T Core::load(const T* address, const Where& where) {
    check_scalar("load", address, where);
    T value;
    // Relaxed: dcci, signals and barriers provide the order.
    if (state_.hooks == nullptr) [[likely]]
        __atomic_load(address, &value, __ATOMIC_RELAXED);
    else
        state_.hooks->load(address, &value, sizeof value, where);
    return value;
}

template <Scalar T>
inline void Core::store(T* address, std::type_identity_t<T> value, const Where& where) {
    check_scalar("store", address, where);
    last_line_ = 0;
    // Relaxed: dcci, signals and barriers provide the order.
    if (state_.hooks == nullptr) [[likely]]
        __atomic_store(address, &value, __ATOMIC_RELAXED);
    else
        state_.hooks->store(address, &value, sizeof value, where);
}

template <class T, class Tag>
inline std::remove_const_t<T> Core::get(memory_view<T, Tag> view, std::size_t index, const Where& where) {
    if (index >= view.size()) [[unlikely]]
        detail::fail_subview(Tag::name, index, 1, view.size());
    return load(const_cast<const std::remove_const_t<T>*>(view.data() + index), where);
}

template <class T, class Tag>
inline void Core::set(memory_view<T, Tag> view, std::size_t index, std::type_identity_t<T> value, const Where& where) {
    if (index >= view.size()) [[unlikely]]
        detail::fail_subview(Tag::name, index, 1, view.size());
    store(view.data() + index, value, where);
}

inline void Core::dcci(const void* address, std::size_t bytes, const Where& where) {
    detail::order_stores();
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->dcci(address, bytes, where);
    const std::uintptr_t line = detail::number_of(address) / cache_line + 1;
    polls_ = line == last_line_ ? polls_ + 1 : 0;
    if (polls_ != 0 || --dcci_left_ <= 0) poll_point(polls_ + 1, where);
    last_line_ = line;
}

inline void Core::quiet(const Where& where) {
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->quiet(where);
    if (state_.unmapped != nullptr) [[unlikely]]
        quiet_unmapped(where);
    detail::complete_stores();
}

inline void Core::fence(const Where& where) {
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->fence(where);
    if (state_.unmapped != nullptr) [[unlikely]]
        fence_unmapped(where);
    detail::order_stores();
}

template <class T>
inline T* Core::remote(T* symmetric, int pe, const Where& where) const {
    const std::uintptr_t computed = state_.window.remote(detail::number_of(symmetric), pe);
    if (computed != 0) [[likely]]
        return reinterpret_cast<T*>(computed);
    return static_cast<T*>(remote_slow_path(symmetric, pe, where));
}

template <class T>
inline T* Core::find(T* symmetric, int pe, const Where& where) const {
    const std::uintptr_t computed = state_.window.remote(detail::number_of(symmetric), pe);
    if (computed != 0) [[likely]]
        return reinterpret_cast<T*>(computed);
    return static_cast<T*>(find_slow_path(symmetric, pe, where));
}

template <class T>
inline gm_view<T> Core::remote(gm_view<T> symmetric, int pe, const Where& where) const {
    return {remote(symmetric.data(), pe, where), symmetric.size()};
}

template <class T>
inline void Core::put(T* target, const T* source, std::size_t count, int pe, const Where& where) {
    T* there = find(target, pe, where);
    const std::size_t bytes = count * sizeof(T);
    if (bytes == 0) return;
    if (there == nullptr) [[unlikely]]
        return put_unmapped(target, source, bytes, pe, where);
    issue(
        [&] {
            return Command{"put", Pipe::copy_out, {there, bytes, 1, 0, true}, false, {{source, bytes, 1, 0, true}, {}},
                           where};
        },
        [=] { std::memcpy(there, source, bytes); });
}

template <class T>
inline void Core::get(T* target, const T* source, std::size_t count, int pe, const Where& where) {
    const T* there = find(const_cast<T*>(source), pe, where);
    const std::size_t bytes = count * sizeof(T);
    if (bytes == 0) return;
    if (there == nullptr) [[unlikely]]
        return get_unmapped(target, source, bytes, pe, where);
    issue(
        [&] {
            return Command{"get", Pipe::copy_in, {target, bytes, 1, 0, true}, false, {{there, bytes, 1, 0, true}, {}},
                           where};
        },
        [=] { std::memcpy(target, there, bytes); });
}

template <class T>
inline void Core::put_signal(T* target, const T* source, std::size_t count, std::uint64_t* signal, std::uint64_t value,
                             int pe, const Where& where) {
    if (state_.unmapped != nullptr && find(signal, pe, where) == nullptr) [[unlikely]]
        return put_signal_unmapped(target, source, count * sizeof(T), signal, value, pe, where);
    put(target, source, count, pe, where);
    fence(where);
    signal_set_on(signal, value, pe, where);
}

inline void Core::signal_set(std::uint64_t* word, std::uint64_t value, const Where& where) {
    check_scalar("signal_set", word, where);
    if (state_.hooks != nullptr) [[unlikely]]
        return state_.hooks->signal({word, value, false}, where);
    // Release: pairs with acquire_word in the waits.
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

inline void Core::signal_set_on(std::uint64_t* word, std::uint64_t value, int pe, const Where& where) {
    std::uint64_t* there = find(word, pe, where);
    if (there == nullptr) [[unlikely]]
        return signal_unmapped({word, value, false}, pe, where);
    signal_set(there, value, where);
}

inline void Core::signal_add(std::uint64_t* word, std::uint64_t value, const Where& where) {
    check_scalar("signal_add", word, where);
    if (state_.hooks != nullptr) [[unlikely]]
        return state_.hooks->signal({word, value, true}, where);
    // Release: pairs with acquire_word in the waits.
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
}

inline void Core::signal_add_on(std::uint64_t* word, std::uint64_t value, int pe, const Where& where) {
    std::uint64_t* there = find(word, pe, where);
    if (there == nullptr) [[unlikely]]
        return signal_unmapped({word, value, true}, pe, where);
    signal_add(there, value, where);
}

inline std::uint64_t Core::signal_fetch(const std::uint64_t* word, const Where& where) {
    check_scalar("signal_fetch", word, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->before_fetch(word, where);
    const std::uint64_t seen = detail::acquire_word(word);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->after_wait(word, seen, where);
    return seen;
}

inline std::uint64_t Core::signal_wait_until(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                             const Awaited& from, const Where& where) {
    check_scalar("signal_wait_until", word, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->before_wait_until({word, compare, value, from}, where);
    std::uint64_t seen = detail::acquire_word(word);
    if (!satisfied(seen, compare, value)) seen = wait_slow_path({word, compare, value, from}, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->after_wait(word, seen, where);
    return seen;
}

inline std::uint64_t Core::signal_fetch_on(const std::uint64_t* word, int pe, const Where& where) {
    const std::uint64_t* there = find(const_cast<std::uint64_t*>(word), pe, where);
    if (there == nullptr) [[unlikely]]
        return fetch_unmapped(word, pe, where);
    return signal_fetch(there, where);
}

inline std::uint64_t Core::signal_wait_until_on(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                                const Awaited& from, const Where& where) {
    const std::uint64_t* there = find(const_cast<std::uint64_t*>(word), from.pe, where);
    if (there == nullptr) [[unlikely]]
        return wait_unmapped({word, compare, value, from}, where);
    return signal_wait_until(there, compare, value, from, where);
}

// `changes(before)`: whether the operation changes the word from `before`.
template <class T, class Run, class Changes>
inline T Core::atomic(const char* operation, T* address, bool add, const Where& where, Run&& run, Changes&& changes) {
    check_scalar(operation, address, where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->before_atomic(address, sizeof(T), where);
    const T before = run();
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->after_atomic({address, sizeof(T), detail::bits_of(before), add, changes(before)}, where);
    return before;
}

template <AtomicInteger T>
inline T Core::atomic_fetch_add(T* address, std::type_identity_t<T> value, const Where& where) {
    // Acquire and release: pairs with the other atomics and with the waits on this word.
    return atomic(
        "atomic_fetch_add", address, true, where, [&] { return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL); },
        [&](T) { return value != 0; });
}

template <Scalar T>
inline T Core::atomic_swap(T* address, std::type_identity_t<T> value, const Where& where) {
    return atomic(
        "atomic_swap", address, false, where,
        [&] {
            T before;
            // Acquire and release: pairs with the other atomics and with the waits on this word.
            __atomic_exchange(address, &value, &before, __ATOMIC_ACQ_REL);
            return before;
        },
        [&](const T& before) { return detail::bits_of(before) != detail::bits_of(value); });
}

template <AtomicInteger T>
inline T Core::atomic_compare_swap(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                                   const Where& where) {
    return atomic(
        "atomic_compare_swap", address, false, where,
        [&] {
            T before = expected;
            // Acquire and release: pairs with the other atomics and with the waits on this word.
            __atomic_compare_exchange_n(address, &before, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
            return before;
        },
        [&](T before) { return before == expected && before != desired; });
}

template <AtomicInteger T>
inline T Core::atomic_fetch_add_on(T* symmetric, std::type_identity_t<T> value, int pe, const Where& where) {
    if (T* there = find(symmetric, pe, where); there != nullptr) [[likely]]
        return atomic_fetch_add(there, value, where);
    return detail::from_bits<T>(
        atomic_unmapped("atomic_fetch_add_on",
                        {RemoteAtomic::Kind::fetch_add, symmetric, sizeof(T), detail::to_bits(value)}, pe, where));
}

template <AtomicInteger T>
inline T Core::atomic_swap_on(T* symmetric, std::type_identity_t<T> value, int pe, const Where& where) {
    if (T* there = find(symmetric, pe, where); there != nullptr) [[likely]]
        return atomic_swap(there, value, where);
    return detail::from_bits<T>(atomic_unmapped(
        "atomic_swap_on", {RemoteAtomic::Kind::swap, symmetric, sizeof(T), detail::to_bits(value)}, pe, where));
}

template <AtomicInteger T>
inline T Core::atomic_compare_swap_on(T* symmetric, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                                      int pe, const Where& where) {
    if (T* there = find(symmetric, pe, where); there != nullptr) [[likely]]
        return atomic_compare_swap(there, expected, desired, where);
    return detail::from_bits<T>(atomic_unmapped(
        "atomic_compare_swap_on",
        {RemoteAtomic::Kind::compare_swap, symmetric, sizeof(T), detail::to_bits(desired), detail::to_bits(expected)},
        pe, where));
}

inline void Core::core_barrier(const Where& where) {
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->enter_core_barrier(where);
    if (count() > 1) core_barrier_slow_path(where);
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->leave_core_barrier();
}

}  // namespace npushmem::npu
