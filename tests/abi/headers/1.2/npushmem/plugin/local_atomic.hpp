// SPDX-License-Identifier: BSD-3-Clause
// Performs an atomic operation of the transport contract on memory that this process has mapped.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// Returns whether the operation returns the old value into `result`.
constexpr bool fetches(std::uint8_t operation) {
    return operation == NPUSHMEM_ATOMIC_FETCH || operation >= NPUSHMEM_ATOMIC_SWAP;
}

// The bits of npushmem_reach::atomic_32 and atomic_64 for all operations.
constexpr std::uint32_t all_atomics = (1U << NPUSHMEM_ATOMIC_COUNT) - 1;

namespace detail {

// Returns the old value (for SET: unspecified). acq_rel throughout: an atomic may publish data that a fence put before
// it, and pairs with any other atomic access to the word, by any PE.
template <class Word>
Word run_atomic(std::atomic_ref<Word> word, const npushmem_atomic& op) {
    const auto operand = static_cast<Word>(op.operand);
    constexpr auto order = std::memory_order_acq_rel;
    switch (op.operation) {
        case NPUSHMEM_ATOMIC_FETCH: return word.load(std::memory_order_acquire);  // pairs with the others' releases
        case NPUSHMEM_ATOMIC_SET: word.store(operand, std::memory_order_release); return 0;  // pairs with FETCH, waits
        case NPUSHMEM_ATOMIC_ADD:
        case NPUSHMEM_ATOMIC_FETCH_ADD: return word.fetch_add(operand, order);
        case NPUSHMEM_ATOMIC_AND:
        case NPUSHMEM_ATOMIC_FETCH_AND: return word.fetch_and(operand, order);
        case NPUSHMEM_ATOMIC_OR:
        case NPUSHMEM_ATOMIC_FETCH_OR: return word.fetch_or(operand, order);
        case NPUSHMEM_ATOMIC_XOR:
        case NPUSHMEM_ATOMIC_FETCH_XOR: return word.fetch_xor(operand, order);
        case NPUSHMEM_ATOMIC_SWAP: return word.exchange(operand, order);
        default: break;
    }
    auto expected = static_cast<Word>(op.compare);
    word.compare_exchange_strong(expected, operand, order, std::memory_order_acquire);
    return expected;
}

template <class Word>
void apply_atomic(void* address, const npushmem_atomic& op) {
    const Word old = run_atomic(std::atomic_ref<Word>(*static_cast<Word*>(address)), op);
    if (fetches(op.operation)) std::memcpy(op.result, &old, sizeof old);
}

}  // namespace detail

// Code::argument: an unknown operation or width, a misaligned address, or no place for a fetched value.
inline Code apply_atomic(void* address, const npushmem_atomic& op) {
    if (op.operation >= NPUSHMEM_ATOMIC_COUNT || (op.width != 4 && op.width != 8)) return Code::argument;
    if (reinterpret_cast<std::uintptr_t>(address) % op.width != 0) return Code::argument;
    if (fetches(op.operation) && op.result == nullptr) return Code::argument;
    if (op.width == 4)
        detail::apply_atomic<std::uint32_t>(address, op);
    else
        detail::apply_atomic<std::uint64_t>(address, op);
    return Code::ok;
}

// Updates the signal word of a put_signal. Release: pairs with the waiter's acquire, so that it sees the data with the
// signal.
inline Code apply_signal(void* address, std::uint64_t signal, std::uint32_t operation) {
    if (reinterpret_cast<std::uintptr_t>(address) % sizeof signal != 0) return Code::argument;
    const std::atomic_ref<std::uint64_t> word(*static_cast<std::uint64_t*>(address));
    switch (operation) {
        case NPUSHMEM_SIGNAL_SET: word.store(signal, std::memory_order_release); return Code::ok;
        case NPUSHMEM_SIGNAL_ADD: word.fetch_add(signal, std::memory_order_release); return Code::ok;
        default: return Code::argument;
    }
}

}  // namespace npushmem
