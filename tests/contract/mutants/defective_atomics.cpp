// SPDX-License-Identifier: BSD-3-Clause
// The defects of atomics and signals.
#include <cstring>

#include "npushmem/plugin/local_atomic.hpp"
#include "tests/contract/mutants/defective.hpp"

namespace npushmem::contract {

npushmem_atomic Defective::wrong_atomic(const npushmem_atomic& op) const {
    npushmem_atomic out = op;
    if (has(Defect::compare_ignored) && op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP)
        out.operation = NPUSHMEM_ATOMIC_SWAP;
    if (has(Defect::and_or_swapped)) {
        if (op.operation == NPUSHMEM_ATOMIC_AND) out.operation = NPUSHMEM_ATOMIC_OR;
        if (op.operation == NPUSHMEM_ATOMIC_OR) out.operation = NPUSHMEM_ATOMIC_AND;
    }
    if (has(Defect::xor_is_or) && op.operation == NPUSHMEM_ATOMIC_FETCH_XOR) out.operation = NPUSHMEM_ATOMIC_FETCH_OR;
    return out;
}

// Performs the operation, and sets the word behind it to zero.
Code Defective::atomic_of_wrong_width(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    std::uint32_t zero = 0;
    const Code code = repeat([&] {
        return inner().put(queue, {op.pe, 0, op.remote, op.offset + 4, &zero, 4}, nullptr);
    });
    if (code != Code::ok) return code;
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    return repeat([&] {
        return post(queue, token, [&](std::uint64_t q, std::uint64_t* t) { return inner().atomic(q, op, t); });
    });
}

Code Defective::fetch_new_value(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    const Code code = repeat([&] { return inner().atomic(queue, op, nullptr); });
    if (code != Code::ok) return code;
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    npushmem_atomic fetch = op;
    fetch.operation = NPUSHMEM_ATOMIC_FETCH;
    (void)repeat([&] { return inner().atomic(queue, fetch, nullptr); });
    return wait_for_delivery(queue) == Code::ok ? done(token) : Code::system;
}

Code Defective::add_in_two_steps(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    words_.push_back(std::make_unique<std::uint64_t>());
    Addition added{queue, op, words_.back().get(), 0};
    const Code code = repeat([&] {
        return inner().get(queue, {op.pe, 0, op.remote, op.offset, added.word, 8}, &added.token);
    });
    if (code != Code::ok) return code;
    additions_.push_back(added);
    return done(token);
}

void Defective::finish_additions() {
    std::erase_if(additions_, [this](const Addition& each) {
        if (inner().test(each.queue, each.token) != Code::ok) return false;
        if (each.op.result != nullptr) std::memcpy(each.op.result, each.word, sizeof *each.word);
        *each.word += each.op.operand;
        (void)repeat([&] {
            return inner().put(each.queue, {each.op.pe, 0, each.op.remote, each.op.offset, each.word, 8}, nullptr);
        });
        return true;
    });
}

Code Defective::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    const bool adds = op.operation == NPUSHMEM_ATOMIC_ADD || op.operation == NPUSHMEM_ATOMIC_FETCH_ADD;
    if (has(Defect::atomics_of_two_steps) && adds && op.width == 8) return add_in_two_steps(queue, op, token);
    if (has(Defect::wide_32_bit_atomics) && op.width == 4) return atomic_of_wrong_width(queue, op, token);
    if (has(Defect::fetches_new_value) && fetches(op.operation)) return fetch_new_value(queue, op, token);
    if (has(Defect::misaligned_atomic_accepted) && op.width == 8 && op.offset % 8 != 0) return done(token);
    if (has(Defect::unknown_atomic_accepted) && op.operation >= NPUSHMEM_ATOMIC_COUNT) return done(token);
    if (has(Defect::width_3_accepted) && op.width == 3) return done(token);
    const bool is_apart = has(Defect::fence_misses_atomics) || has(Defect::quiet_misses_atomics) ||
                          has(Defect::fence_misses_earlier_atomics) ||
                          (has(Defect::fence_misses_fetching_atomics) && fetches(op.operation));
    // What was posted before comes first; what is posted later may overtake.
    if (has(Defect::fence_misses_earlier_atomics))
        if (const Code code = wait_for_delivery(queue); code != Code::ok) return code;
    const npushmem_atomic sent = wrong_atomic(op);
    const Code code = post(is_apart ? unfenced(queue) : queue, token,
                           [&](std::uint64_t q, std::uint64_t* t) { return inner().atomic(q, sent, t); });
    if (has(Defect::early_fetch_token) && token != nullptr) *token = 0;
    if (code == Code::ok && has(Defect::posted_although_again) && each(7)) return Code::again;
    if (code == Code::range && has(Defect::atomic_end_unchecked)) return done(token);
    return code;
}

// Updates the signal, then puts the data, without an order between them.
Code Defective::signal_first(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    npushmem_put_signal signal = op;
    signal.data.bytes = 0;
    const Code code = repeat([&] { return inner().put_signal(queue, signal, nullptr); });
    if (code != Code::ok) return code;
    return repeat([&] {
        return post(queue, token, [&](std::uint64_t q, std::uint64_t* t) { return inner().put(q, op.data, t); });
    });
}

Code Defective::signal_after_halves(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    const Code code = repeat([&] { return put_in_halves(queue, op.data, nullptr); });
    if (code != Code::ok) return code;
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    npushmem_put_signal signal = op;
    signal.data.bytes = 0;
    return repeat([&] {
        return post(queue, token, [&](std::uint64_t q, std::uint64_t* t) { return inner().put_signal(q, signal, t); });
    });
}

Code Defective::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    constexpr std::uint64_t large = 1 << 16;
    if (has(Defect::signal_before_data) || (has(Defect::signal_before_large_data) && op.data.bytes > large))
        return signal_first(queue, op, token);
    if (has(Defect::torn_words) && op.data.bytes == 8) return signal_after_halves(queue, op, token);
    if (has(Defect::misaligned_signal_accepted) && op.signal_offset % 8 != 0) return done(token);
    if (has(Defect::unknown_signal_accepted) && op.operation > NPUSHMEM_SIGNAL_ADD) return done(token);
    const bool is_apart = has(Defect::fence_misses_put_signals) || has(Defect::quiet_misses_put_signals) ||
                          has(Defect::fence_misses_earlier_put_signals);
    if (has(Defect::fence_misses_earlier_put_signals))
        if (const Code code = wait_for_delivery(queue); code != Code::ok) return code;
    npushmem_put_signal sent = op;
    if (has(Defect::quiet_misses_put_signals) && op.data.bytes > 0) sent.data = with_own_source(op.data);
    if (has(Defect::signal_add_is_set) && op.operation == NPUSHMEM_SIGNAL_ADD) sent.operation = NPUSHMEM_SIGNAL_SET;
    if (has(Defect::signal_set_is_add) && op.operation == NPUSHMEM_SIGNAL_SET) sent.operation = NPUSHMEM_SIGNAL_ADD;
    const Code code = post(is_apart ? unfenced(queue) : queue, token,
                           [&](std::uint64_t q, std::uint64_t* t) { return inner().put_signal(q, sent, t); });
    if (code == Code::range && has(Defect::signal_end_unchecked)) return done(token);
    return code;
}

}  // namespace npushmem::contract
