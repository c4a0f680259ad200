#include "core/team/team_mail.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace npushmem {

namespace {

std::atomic_ref<std::uint64_t> state_at(std::byte* slot) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot));
}

constexpr std::uint64_t letter_at = sizeof(std::uint64_t);
static_assert(letter_at + sizeof(Letter) <= TeamMail::slot_bytes);

// What another process has written: never more than a letter holds.
Letter read_letter(const std::byte* slot) {
    Letter letter;
    std::memcpy(static_cast<void*>(&letter), slot + letter_at, offsetof(Letter, words));
    letter.count = std::min<std::uint32_t>(letter.count, Letter::most_words);
    std::memcpy(letter.words.data(), slot + letter_at + offsetof(Letter, words), letter.count * sizeof(std::uint32_t));
    return letter;
}

}  // namespace

bool TeamMail::expect(std::uint64_t id) {
    bool first = false;
    {
        const std::lock_guard guard(lock_);
        first = kept_.try_emplace(id).second;
    }
    empty_box();
    return first;
}

void TeamMail::forget(std::uint64_t id) {
    const std::lock_guard guard(lock_);
    kept_.erase(id);
}

void TeamMail::keep(const Letter& letter) {
    const std::lock_guard guard(lock_);
    const auto found = kept_.find(letter.id);
    if (found != kept_.end()) found->second.push_back(letter);
}

void TeamMail::empty_box() {
    const std::lock_guard guard(lock_);
    for (int slot = 0; slot < slots; ++slot) {
        std::byte* const here = parts_.own_slice + offset_of(slot);
        // Pairs with the store in try_slot, or with the transport's delivery of the signal. Sequentially consistent: a
        // letter that is not found here was not there yet when its writer looked at ClosedIds.
        if ((state_at(here).load(std::memory_order_seq_cst) & full) == 0) continue;
        const Letter letter = read_letter(here);
        const auto found = kept_.find(letter.id);
        if (found != kept_.end()) found->second.push_back(letter);
        // Release: pairs with the acquire of the claim; the letter has been read.
        state_at(here).store(0, std::memory_order_release);
    }
}

std::optional<Letter> TeamMail::take(std::uint64_t id, std::optional<std::uint32_t> number) {
    empty_box();
    const std::lock_guard guard(lock_);
    const auto found = kept_.find(id);
    if (found == kept_.end()) return std::nullopt;
    std::deque<Letter>& letters = found->second;
    const auto wanted =
        std::ranges::find_if(letters, [&](const Letter& letter) { return !number || letter.number == *number; });
    if (wanted == letters.end()) return std::nullopt;
    const Letter letter = *wanted;
    letters.erase(wanted);
    return letter;
}

Status TeamMail::try_slot(int pe, int slot, const Letter& letter, bool& done) {
    std::byte* const slice = slice_of(parts_, pe);
    if (slice == nullptr) return try_remote_slot(pe, slot, letter, done);
    std::byte* const there = slice + offset_of(slot);
    const std::uint64_t claimed = static_cast<std::uint64_t>(parts_.my_pe) + 1;
    std::uint64_t state = 0;
    // Acquire: pairs with the release of the owner, who has read what was there.
    if (!state_at(there).compare_exchange_strong(state, claimed, std::memory_order_acquire, std::memory_order_relaxed))
        return {};
    std::memcpy(there + letter_at, &letter, letter.bytes());
    // Pairs with the load in empty_box.
    state_at(there).store(claimed | full, std::memory_order_seq_cst);
    done = true;
    return {};
}

Status TeamMail::try_remote_slot(int pe, int slot, const Letter& letter, bool& done) {
    const std::uint64_t claimed = static_cast<std::uint64_t>(parts_.my_pe) + 1;
    std::uint64_t before = 0;
    npushmem_atomic claim{};
    claim.pe = pe;
    claim.operation = NPUSHMEM_ATOMIC_COMPARE_SWAP;
    claim.width = 8;
    claim.offset = offset_of(slot);
    claim.operand = claimed;
    claim.result = &before;
    Status tried = parts_.remote.atomic(claim, RemoteAccess::Completion::local);
    if (!tried.ok() || before != 0) return tried;
    done = true;
    Status sent = parts_.remote.put_signal(pe, offset_of(slot) + letter_at, &letter, letter.bytes(), offset_of(slot),
                                           claimed | full, NPUSHMEM_SIGNAL_SET, RemoteAccess::Completion::local);
    // Nobody may drive the transport for this PE after its last letter.
    return sent.ok() ? parts_.remote.quiet(std::span(&pe, 1)) : sent;
}

Status TeamMail::send(int pe, const Letter& letter, const std::function<bool()>& needless) {
    const WaitFor what{.what = "room for a letter about a team", .needs = PeRange::one(pe), .timeout = parts_.timeout};
    WaitFailure failure;
    Status tried;
    bool done = false;
    const auto put = [&] {
        // Not all begin to look for room at the same slot.
        for (int i = 0; i < slots && !done && tried.ok(); ++i)
            tried = try_slot(pe, (parts_.my_pe + i) % slots, letter, done);
        if (!done) empty_box();
        return done || !tried.ok() || (needless && needless());
    };
    const Code code = parts_.waiter.until(put, what, &failure);
    return code == Code::ok ? tried : Status{code, describe(what, failure)};
}

}  // namespace npushmem
