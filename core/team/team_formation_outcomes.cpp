#include "core/team/team_formation_outcomes.hpp"

#include <atomic>

namespace npushmem {

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
    // Release: pairs with the acquire in number_at(), for its own sake; whoever has the id has it from its maker.
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
    // Release: pairs with the acquire in find(), which then finds the number gone.
    for (std::size_t i = 0; i < words.size(); ++i) word_in(entry, i).store(words[i], std::memory_order_release);
    // Sequentially consistent, with the load in number_at() and those of the states of messages: a PE that has put a
    // message and then found nothing here has put it before this PE looks for messages.
    number_in(entry).store(number, std::memory_order_seq_cst);
}

Result<std::uint64_t> TeamFormationOutcomes::number_at(int maker, std::uint64_t offset) const {
    if (std::byte* const slice = slice_of(resources_, maker))
        return number_in(slice + offset).load(std::memory_order_seq_cst);  // with the stores in this file
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
    // The entry may have come to serve another id meanwhile.
    const auto after = number_at(maker, entry);
    if (!after.ok()) return after.status();
    return after.value() == number ? std::optional(words) : std::nullopt;
}

}  // namespace npushmem
