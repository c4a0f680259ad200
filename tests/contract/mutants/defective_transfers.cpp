// SPDX-License-Identifier: BSD-3-Clause
// The defects of puts and gets, of fences and of completion.
#include <algorithm>
#include <cstring>
#include <thread>

#include "npushmem/plugin/local_atomic.hpp"
#include "tests/contract/mutants/defective.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t large = 1 << 16;
constexpr std::uint64_t border = 4096;

std::byte* at(void* base, std::uint64_t offset) { return static_cast<std::byte*>(base) + offset; }

// Bytes before the first page border within the range; 0 if it crosses none.
std::uint64_t before_border(const npushmem_rma& op) {
    const std::uint64_t first = border - op.offset % border;
    return first < op.bytes ? first : 0;
}

npushmem_rma part_of(const npushmem_rma& op, std::uint64_t from, std::uint64_t bytes, std::uint64_t displaced = 0) {
    npushmem_rma out = op;
    out.offset += from + displaced;
    out.local = at(op.local, from);
    out.bytes = bytes;
    return out;
}

}  // namespace

bool Defective::has_unfenced_queue() const {
    switch (defect_) {
        case Defect::quiet_misses_gets:
        case Defect::quiet_misses_atomics:
        case Defect::quiet_misses_put_signals:
        case Defect::fence_misses_large_puts:
        case Defect::fence_misses_atomics:
        case Defect::fence_misses_fetching_atomics:
        case Defect::fence_misses_put_signals:
        case Defect::fence_misses_strided_puts:
        case Defect::fence_misses_gets:
        case Defect::fence_misses_earlier_atomics:
        case Defect::fence_misses_earlier_put_signals: return true;
        default: return false;
    }
}

bool Defective::quiet_covers_unfenced() const {
    return !has(Defect::quiet_misses_gets) && !has(Defect::quiet_misses_atomics) &&
           !has(Defect::quiet_misses_put_signals);
}

std::uint64_t Defective::unfenced(std::uint64_t queue) {
    const auto found = unfenced_.find(queue);
    return found != unfenced_.end() ? found->second : queue;  // an unknown queue is the inner transport's to refuse
}

Code Defective::done(std::uint64_t* token) const {
    if (token != nullptr) *token = 0;
    return Code::ok;
}

Code Defective::wait_for_delivery(std::uint64_t queue) {
    return repeat([&] { return inner().quiet(queue); });
}

// Returns a code if the put ends here.
std::optional<Code> Defective::lose_put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    if (has(Defect::crash_in_large_put) && op.bytes > large) crash("a put");
    if (invented_.contains(op.remote)) return Code::again;
    if (unreachable_.contains(op.remote)) return Code::argument;
    if (has(Defect::operations_after_forget_wait) && forgotten_.contains(op.pe)) return Code::again;
    if (has(Defect::null_buffer_accepted) && op.local == nullptr) return done(token);
    if (has(Defect::empty_put_refused) && op.bytes == 0) return Code::argument;
    if (has(Defect::last_byte_refused)) {
        npushmem_rma next = op;
        ++next.bytes;  // allowed, unless it ends at the region's end; then it is refused and nothing is written
        std::vector<std::byte> landing(next.bytes);
        next.local = landing.data();
        const Code code = repeat([&] { return inner().get(queue, next, nullptr); });
        if (code != Code::ok) return code;
        if (wait_for_delivery(queue) != Code::ok) return Code::system;
    }
    const bool lost = (has(Defect::puts_to_self_lost) && op.pe == pe_) || (has(Defect::puts_lost) && each(1000)) ||
                      (has(Defect::second_queue_loses_puts) && !queues_.empty() && queue != queues_.front()) ||
                      std::exchange(lose_next_put_, false);
    if (lost) return done(token);
    return std::nullopt;
}

int Defective::owner_of(std::uint64_t remote, int otherwise) const {
    for (const auto& [pe, imports] : imports_)
        for (const auto& [number, handle] : imports)
            if (number == remote) return pe;
    return otherwise;
}

npushmem_rma Defective::wrong_put(const npushmem_rma& op) const {
    npushmem_rma out = op;
    if (has(Defect::last_byte_of_odd_sizes_lost) && op.bytes > 1) out.bytes -= op.bytes % 2;
    if (has(Defect::large_puts_cut)) out.bytes = std::min(op.bytes, large);
    if (has(Defect::memory_of_another_pe_accepted)) out.pe = owner_of(op.remote, op.pe);
    if (has(Defect::peers_swapped) && (op.pe == 1 || op.pe == 2)) {
        const auto found = imports_.find(3 - op.pe);
        if (found == imports_.end()) return out;
        out.pe = found->first;
        out.remote = found->second.front().first;
    }
    return out;
}

Code Defective::put_around_border(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const std::uint64_t first = before_border(op);
    const Code code = repeat([&] { return inner().put(queue, part_of(op, 0, first), nullptr); });
    if (code != Code::ok) return code;
    return repeat([&] {
        return post(queue, token, [&](std::uint64_t q, std::uint64_t* t) {
            return inner().put(q, part_of(op, first, op.bytes - first, 1), t);
        });
    });
}

// Also changes what it must leave: the byte behind the target, or the source.
Code Defective::put_and_more(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const Code code = repeat([&] { return inner().put(queue, op, nullptr); });
    if (code != Code::ok) return code;
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    if (has(Defect::source_changed)) *at(op.local, op.bytes - 1) ^= std::byte{1};
    if (has(Defect::writes_beyond_put)) {
        std::byte beyond{0x11};
        (void)repeat([&] {
            return inner().put(queue, {op.pe, 0, op.remote, op.offset + op.bytes, &beyond, 1}, nullptr);
        });
        if (wait_for_delivery(queue) != Code::ok) return Code::system;
    }
    return done(token);
}

Code Defective::put_in_halves(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const Code code = repeat([&] { return inner().put(queue, part_of(op, op.bytes / 2, op.bytes / 2), nullptr); });
    if (code != Code::ok) return code;
    // A watcher sees the first half alone, also one that only runs while this thread does not. On a loaded machine each
    // yield takes milliseconds.
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    if (each(10)) std::this_thread::yield();
    return repeat([&] {
        return post(queue, token,
                    [&](std::uint64_t q, std::uint64_t* t) { return inner().put(q, part_of(op, 0, op.bytes / 2), t); });
    });
}

npushmem_rma Defective::with_own_source(const npushmem_rma& op) {
    npushmem_rma out = op;
    sources_.push_back(std::make_unique<Bytes>(at(op.local, 0), at(op.local, op.bytes)));
    out.local = sources_.back()->data();
    return out;
}

Code Defective::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    if (const auto code = lose_put(queue, op, token)) return *code;
    if (has(Defect::put_displaced_at_page_border) && before_border(op) > 0) return put_around_border(queue, op, token);
    if ((has(Defect::source_changed) || has(Defect::writes_beyond_put)) && op.bytes > 0)
        return put_and_more(queue, op, token);
    if (has(Defect::torn_words) && (op.bytes == 4 || op.bytes == 8)) return put_in_halves(queue, op, token);
    const bool misses_fence = has(Defect::fence_misses_large_puts) && op.bytes > large;
    const npushmem_rma sent = has(Defect::early_quiet) ? with_own_source(op) : wrong_put(op);
    const Code code = post(misses_fence ? unfenced(queue) : queue, token,
                           [&](std::uint64_t q, std::uint64_t* t) { return inner().put(q, sent, t); });
    if (has(Defect::early_put_token) && token != nullptr) *token = 0;
    if (code == Code::ok && has(Defect::posted_although_again) && each(7)) return Code::again;
    if (has(Defect::error_sticks) && static_cast<int>(code) < 0) failed_[queue] = code;
    const bool overflows = op.offset + op.bytes < op.offset;
    if (code == Code::range && has(overflows ? Defect::put_overflow_unchecked : Defect::put_end_unchecked))
        return done(token);
    if (has(Defect::unknown_remote_accepted) && code == Code::argument) return done(token);
    if (has(Defect::unknown_queue_accepted) && code == Code::argument) return done(token);
    return code;
}

npushmem_put_strided Defective::wrong_strided(const npushmem_put_strided& op) const {
    npushmem_put_strided out = op;
    if (has(Defect::strided_at_source_distance)) out.remote_stride = op.local_stride;
    if (has(Defect::strided_last_block_lost) && op.count > 1) --out.count;
    if (has(Defect::strided_overlap_ignored) && op.local_stride < op.block.bytes) out.local_stride = 0;
    return out;
}

Code Defective::put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::strided_puts_lost) && each(100)) return done(token);
    const Code code =
        post(has(Defect::fence_misses_strided_puts) ? unfenced(queue) : queue, token,
             [&](std::uint64_t q, std::uint64_t* t) { return inner().put_strided(q, wrong_strided(op), t); });
    if (has(Defect::early_strided_token) && token != nullptr) *token = 0;
    if (code == Code::range && has(Defect::strided_end_unchecked)) return done(token);
    return has(Defect::unknown_queue_accepted) && code == Code::argument ? done(token) : code;
}

Code Defective::get_around_border(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const std::uint64_t first = before_border(op);
    const Code code = repeat([&] { return inner().get(queue, part_of(op, 0, first), nullptr); });
    if (code != Code::ok) return code;
    const Code rest = repeat([&] { return inner().get(queue, part_of(op, first, op.bytes - first, 1), nullptr); });
    if (rest != Code::ok) return rest;
    return wait_for_delivery(queue) == Code::ok ? done(token) : Code::system;
}

Code Defective::get_in_halves(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const std::uint64_t half = op.bytes / 2;
    const Code code = repeat([&] { return inner().get(queue, part_of(op, 0, half), nullptr); });
    if (code != Code::ok) return code;
    if (wait_for_delivery(queue) != Code::ok) return Code::system;
    return repeat([&] {
        return post(queue, token,
                    [&](std::uint64_t q, std::uint64_t* t) { return inner().get(q, part_of(op, half, half), t); });
    });
}

// Returns what the first get of the same place has read.
Code Defective::get_from_cache(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    Bytes& known = cache_[{op.remote, op.offset}];
    if (known.size() != op.bytes) {
        const Code code = repeat([&] { return inner().get(queue, op, nullptr); });
        if (code != Code::ok) return code;
        if (wait_for_delivery(queue) != Code::ok) return Code::system;
        known.assign(at(op.local, 0), at(op.local, op.bytes));
    }
    std::memcpy(op.local, known.data(), known.size());
    return done(token);
}

Code Defective::get_into_landing(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    auto landing = std::make_unique<Landing>(Landing{unfenced(queue), 0, op.local, Bytes(op.bytes)});
    npushmem_rma sent = op;
    sent.local = landing->bytes.data();
    const Code code = inner().get(landing->queue, sent, &landing->token);
    if (code != Code::ok) return code;
    landings_.push_back(std::move(landing));
    return done(token);
}

void Defective::finish_landings() {
    std::erase_if(landings_, [this](const auto& landing) {
        if (inner().test(landing->queue, landing->token) != Code::ok) return false;
        std::memcpy(landing->to, landing->bytes.data(), landing->bytes.size());
        return true;
    });
}

Code Defective::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::gets_lost) && each(700)) return done(token);
    if (has(Defect::get_displaced_at_page_border) && before_border(op) > 0) return get_around_border(queue, op, token);
    if (has(Defect::torn_words) && (op.bytes == 4 || op.bytes == 8)) return get_in_halves(queue, op, token);
    if (has(Defect::stale_get) && op.bytes > 0) return get_from_cache(queue, op, token);
    if (has(Defect::quiet_misses_gets) && op.bytes > 0) return get_into_landing(queue, op, token);
    const Code code = post(has(Defect::fence_misses_gets) ? unfenced(queue) : queue, token,
                           [&](std::uint64_t q, std::uint64_t* t) { return inner().get(q, op, t); });
    if (has(Defect::early_get_token) && token != nullptr) *token = 0;
    if (code == Code::range && has(Defect::get_end_unchecked)) return done(token);
    if (code == Code::ok && has(Defect::writes_beyond_get) && op.bytes > 0) {
        if (wait_for_delivery(queue) != Code::ok) return Code::system;
        *at(op.local, op.bytes) = std::byte{0x11};
    }
    return code;
}

Code Defective::fence(std::uint64_t queue) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::no_fence)) return Code::ok;
    if (has(Defect::every_second_fence_lost) && each(2)) return Code::ok;
    if (has(Defect::fence_misses_second_queue) && !queues_.empty() && queue != queues_.front()) return Code::ok;
    const Code code = inner().fence(queue);
    return has(Defect::unknown_queue_accepted) && static_cast<int>(code) < 0 ? Code::ok : code;
}

Code Defective::quiet(std::uint64_t queue) {
    const std::lock_guard lock(mutex_);
    if (has(Defect::early_quiet)) return Code::ok;
    for (const std::uint64_t gone : destroyed_)
        if (has(Defect::destroyed_queue_writes) && wait_for_delivery(gone) != Code::ok) return Code::system;
    if (has(Defect::quiet_waits_for_other_queues) && outstanding_.size() > (outstanding_.contains(queue) ? 1U : 0U))
        return Code::again;
    if (has(Defect::forget_leaves_operations) && !forgotten_.empty() && outstanding_.contains(queue))
        return Code::again;
    if (const auto found = failed_.find(queue); found != failed_.end()) return found->second;
    finish_additions();
    Code code = additions_.empty() ? inner().quiet(queue) : Code::again;
    if (const auto found = unfenced_.find(queue); found != unfenced_.end()) {
        const Code other = inner().quiet(found->second);
        if (quiet_covers_unfenced() && code == Code::ok) code = other;
    }
    if (code == Code::ok) outstanding_.erase(queue);
    return has(Defect::unknown_queue_accepted) && static_cast<int>(code) < 0 ? Code::ok : code;
}

Code Defective::test(std::uint64_t queue, std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = tokens_.find(token);
    if (found == tokens_.end() && has(Defect::unknown_token_waits) && token > last_token_) return Code::again;
    if (found == tokens_.end()) return inner().test(queue, 0);
    if (lost_tokens_.contains(token)) {
        (void)inner().progress();
        return Code::again;
    }
    const Code code = inner().test(found->second.queue, found->second.number);
    if (code != Code::again) tokens_.erase(found);
    return code;
}

Code Defective::progress() {
    const std::lock_guard lock(mutex_);
    finish_additions();
    finish_landings();
    const Code code = inner().progress();
    return code == Code::again && has(Defect::progress_fails_when_idle) ? Code::system : code;
}

Code Defective::poll_event(npushmem_event& out) {
    const std::lock_guard lock(mutex_);
    if (!has(Defect::event_without_cause) && !std::exchange(has_event_, false)) return inner().poll_event(out);
    out.code = NPUSHMEM_E_SYSTEM;
    out.pe = -1;
    std::strcpy(out.message, "the defect: nothing has happened");
    return Code::ok;
}

}  // namespace npushmem::contract
