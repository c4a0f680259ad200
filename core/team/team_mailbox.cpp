// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_mailbox.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace npushmem {

namespace {

std::atomic_ref<std::uint64_t> state_at(std::byte* slot) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot));
}

constexpr std::uint64_t message_offset = sizeof(std::uint64_t);
static_assert(message_offset + sizeof(TeamMessage) <= TeamMailbox::slot_bytes);

// Limits the length that another process wrote to that of a message.
TeamMessage read_message(const std::byte* slot) {
    TeamMessage message;
    std::memcpy(static_cast<void*>(&message), slot + message_offset, offsetof(TeamMessage, words));
    message.count = std::min<std::uint32_t>(message.count, TeamMessage::max_words);
    std::memcpy(message.words.data(), slot + message_offset + offsetof(TeamMessage, words),
                message.count * sizeof(std::uint32_t));
    return message;
}

}  // namespace

bool TeamMailbox::expect(std::uint64_t id) {
    bool first = false;
    {
        const std::lock_guard guard(lock_);
        first = inbox_.try_emplace(id).second;
    }
    drain();
    return first;
}

void TeamMailbox::forget(std::uint64_t id) {
    const std::lock_guard guard(lock_);
    inbox_.erase(id);
}

void TeamMailbox::deliver_locally(const TeamMessage& message) {
    const std::lock_guard guard(lock_);
    const auto found = inbox_.find(message.id);
    if (found != inbox_.end()) found->second.push_back(message);
}

void TeamMailbox::drain() {
    const std::lock_guard guard(lock_);
    for (int slot = 0; slot < slots; ++slot) {
        std::byte* const here = resources_.own_slice + offset_of(slot);
        // Partner: the store in try_slot, or the transport's delivery of the signal. Sequentially consistent: the
        // writer of a message that is missing here wrote it after this load, so it reads TeamFormationOutcomes later.
        const std::uint64_t state = state_at(here).load(std::memory_order_seq_cst);
        if ((state & full) == 0) {
            if (state != 0) free_if_dead(slot, state);
            continue;
        }
        const TeamMessage message = read_message(here);
        const auto found = inbox_.find(message.id);
        if (found != inbox_.end()) found->second.push_back(message);
        // Release. Partner: the acquire of the claim. The message has been read.
        state_at(here).store(0, std::memory_order_release);
    }
}

// A live writer holds a claim for moments. The transport delivers nothing more of a dead PE: find_dead() has made it
// forget the PE.
void TeamMailbox::free_if_dead(int slot, std::uint64_t claimed) {
    if (claimed > static_cast<std::uint64_t>(resources_.npes)) return;  // no PE's claim
    const int writer = static_cast<int>(claimed) - 1;
    if (resources_.liveness == nullptr || resources_.liveness->find_dead(PeRange::one(writer)) != writer) return;
    // Partner: the release of the message, which the writer may have sent before it died.
    state_at(resources_.own_slice + offset_of(slot))
        .compare_exchange_strong(claimed, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
}

std::optional<TeamMessage> TeamMailbox::take(std::uint64_t id, std::optional<std::uint32_t> number) {
    drain();
    const std::lock_guard guard(lock_);
    const auto found = inbox_.find(id);
    if (found == inbox_.end()) return std::nullopt;
    std::deque<TeamMessage>& messages = found->second;
    const auto wanted = std::ranges::find_if(
        messages, [&](const TeamMessage& message) { return !number || message.number == *number; });
    if (wanted == messages.end()) return std::nullopt;
    const TeamMessage message = *wanted;
    messages.erase(wanted);
    return message;
}

Status TeamMailbox::try_slot(int pe, int slot, const TeamMessage& message, bool& done) {
    std::byte* const slice = slice_of(resources_, pe);
    if (slice == nullptr) return try_remote_slot(pe, slot, message, done);
    std::byte* const there = slice + offset_of(slot);
    const std::uint64_t claimed = static_cast<std::uint64_t>(resources_.my_pe) + 1;
    std::uint64_t state = 0;
    // Acquire. Partner: the release of the owner, who has read the slot.
    if (!state_at(there).compare_exchange_strong(state, claimed, std::memory_order_acquire, std::memory_order_relaxed))
        return {};
    std::memcpy(there + message_offset, &message, message.bytes());
    // Partner: the load in drain.
    state_at(there).store(claimed | full, std::memory_order_seq_cst);
    done = true;
    return {};
}

Status TeamMailbox::try_remote_slot(int pe, int slot, const TeamMessage& message, bool& done) {
    const std::uint64_t claimed = static_cast<std::uint64_t>(resources_.my_pe) + 1;
    std::uint64_t before = 0;
    npushmem_atomic claim{};
    claim.pe = pe;
    claim.operation = NPUSHMEM_ATOMIC_COMPARE_SWAP;
    claim.width = 8;
    claim.offset = offset_of(slot);
    claim.operand = claimed;
    claim.result = &before;
    Status tried = resources_.remote.atomic(claim, RemoteAccess::Completion::local);
    if (!tried.ok() || before != 0) return tried;
    done = true;
    Status sent =
        resources_.remote.put_signal(pe, offset_of(slot) + message_offset, &message, message.bytes(), offset_of(slot),
                                     claimed | full, NPUSHMEM_SIGNAL_SET, RemoteAccess::Completion::local);
    // This may be the last call of this PE that drives the transport.
    return sent.ok() ? resources_.remote.quiet(std::span(&pe, 1)) : sent;
}

Status TeamMailbox::send(int pe, const TeamMessage& message, const std::function<bool()>& cancelled) {
    const WaitFor what{.what = "room for a message about a team",
                       .needs = PeRange::one(pe),
                       .timeout = resources_.timeout,
                       .is_stepwise = true};
    WaitFailure failure;
    Status tried;
    bool done = false;
    const auto put = [&] {
        // Each PE starts at a different slot.
        for (int i = 0; i < slots && !done && tried.ok(); ++i)
            tried = try_slot(pe, (resources_.my_pe + i) % slots, message, done);
        if (!done) drain();
        return done || !tried.ok() || (cancelled && cancelled());
    };
    const Code code = resources_.waiter.until(put, what, &failure);
    return code == Code::ok ? tried : Status{code, describe(what, failure)};
}

namespace {

constexpr std::uint64_t words_at = sizeof(std::uint64_t);
static_assert(words_at + sizeof(TeamFormationOutcomes::Words) <= TeamFormationOutcomes::entry_bytes);

std::atomic_ref<std::uint64_t> number_in(std::byte* entry) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(entry));
}
std::atomic_ref<std::uint32_t> word_in(std::byte* entry, std::size_t i) {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<std::uint32_t*>(entry + words_at)[i]);
}

}  // namespace

void TeamFormationOutcomes::publish_made(std::uint32_t number) {
    // Release. Partner: the acquire in number_at(). PEs have the id from its maker, which orders the rest.
    number_in(resources_.own_slice + table_offset_).store(number, std::memory_order_release);
}

Result<bool> TeamFormationOutcomes::was_made(int maker, std::uint32_t number) const {
    const auto made = number_at(maker, table_offset_);
    if (!made.ok()) return made.status();
    return number >= 1 && number <= made.value();
}

void TeamFormationOutcomes::close(std::uint32_t number, const Words& words) {
    std::byte* const entry = resources_.own_slice + offset_of(number);
    number_in(entry).store(0, std::memory_order_relaxed);
    // Release. Partner: the acquire in find(), which then finds a different number.
    for (std::size_t i = 0; i < words.size(); ++i) word_in(entry, i).store(words[i], std::memory_order_release);
    // Sequentially consistent. Partner: the load in number_at() and the loads of the messages' states. A PE that puts a
    // message and then finds nothing here has put it before this PE polls for messages.
    number_in(entry).store(number, std::memory_order_seq_cst);
}

Result<std::uint64_t> TeamFormationOutcomes::number_at(int maker, std::uint64_t offset) const {
    if (std::byte* const slice = slice_of(resources_, maker))
        return number_in(slice + offset).load(std::memory_order_seq_cst);  // Partner: the stores in this file
    std::uint64_t number = 0;
    npushmem_atomic fetch{};
    fetch.pe = maker;
    fetch.operation = NPUSHMEM_ATOMIC_FETCH;
    fetch.width = 8;
    fetch.offset = offset;
    fetch.result = &number;
    if (Status done = resources_.remote.atomic(fetch, RemoteAccess::Completion::local); !done.ok()) return done;
    return number;
}

Result<std::optional<TeamFormationOutcomes::Words>> TeamFormationOutcomes::find(int maker, std::uint32_t number) const {
    const std::uint64_t entry = offset_of(number);
    const auto before = number_at(maker, entry);
    if (!before.ok()) return before.status();
    if (before.value() != number) return std::optional<Words>{};
    Words words{};
    if (std::byte* const slice = slice_of(resources_, maker)) {
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = word_in(slice + entry, i).load(std::memory_order_acquire);
    } else if (Status got = resources_.remote.get(maker, entry + words_at, words.data(), sizeof words,
                                                  RemoteAccess::Completion::local);
               !got.ok()) {
        return got;
    }
    // The entry may have been reused for another id meanwhile.
    const auto after = number_at(maker, entry);
    if (!after.ok()) return after.status();
    return after.value() == number ? std::optional(words) : std::nullopt;
}

}  // namespace npushmem
