// SPDX-License-Identifier: BSD-3-Clause
// Every alignment of source and target, page borders, and aligned words that are read while they are written.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/contract/case_tools.hpp"
#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::size_t shifts = 65;  // offsets 0 to 64 of source and target
constexpr std::size_t max_size = 130;
constexpr std::size_t slot = 256;      // holds a shift, the largest transfer and guard bytes on both sides
constexpr std::size_t slot_lead = 24;  // guard bytes before the smallest offset; a multiple of 8
constexpr std::size_t arena = shifts * shifts * slot;
constexpr std::byte untouched{0xee};

// The transfer from source shift `source` to target shift `target`. Over the rounds, each pair of shifts has different
// sizes, and each shift has nearly all sizes.
struct Transfer {
    std::size_t source;
    std::size_t target;
    std::size_t bytes;
    std::size_t at;  // start of its slot

    Transfer(std::size_t index, std::size_t round)
        : source(index / shifts),
          target(index % shifts),
          bytes((source * 2 + target * 3 + round * 37) % (max_size + 1)),
          at(index * slot) {}
    // Where the bytes land in the arena.
    [[nodiscard]] std::size_t landing() const { return at + slot_lead + target; }
};

void copy_into(std::vector<std::byte>& expected, std::size_t at, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
}

void expect_arena(std::span<const std::byte> arena_bytes, const std::vector<std::byte>& expected, std::size_t round,
                  const char* what) {
    const auto wrong = first_difference(arena_bytes, expected);
    if (!wrong.has_value()) return;
    const Transfer transfer(*wrong / slot, round);
    ADD_FAILURE() << what << " of " << transfer.bytes << " bytes, source offset " << transfer.source
                  << ", target offset " << transfer.target << ": byte " << *wrong - transfer.at
                  << " of its slot is wrong, where the transfer starts at byte " << transfer.landing() - transfer.at;
}

constexpr std::size_t alignment_rounds = 4;

void puts_of_every_alignment_change_only_their_target(Fabric& fabric) {
    for (const auto& [from, to] : representative_pairs(fabric, NPUSHMEM_CAP_PUT)) {
        const auto memory = fabric.pe(to).memory().first(arena);
        const auto source = pattern(shifts + max_size, 3);
        for (std::size_t round = 0; round < alignment_rounds; ++round) {
            std::fill(memory.begin(), memory.end(), untouched);
            std::vector<std::byte> expected(arena, untouched);
            for (std::size_t i = 0; i < shifts * shifts; ++i) {
                const Transfer transfer(i, round);
                const auto bytes = std::span(source).subspan(transfer.source, transfer.bytes);
                ASSERT_EQ(fabric.pe(from).put(to, transfer.landing(), bytes.data(), bytes.size()), Code::ok);
                copy_into(expected, transfer.landing(), bytes);
            }
            ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
            expect_arena(memory, expected, round, "put");
        }
    }
}

void gets_of_every_alignment_change_only_their_destination(Fabric& fabric) {
    for (const auto& [from, to] : representative_pairs(fabric, NPUSHMEM_CAP_GET)) {
        const auto memory = fabric.pe(to).memory().first(shifts + max_size);
        const auto source = pattern(memory.size(), 5);
        std::copy(source.begin(), source.end(), memory.begin());
        std::vector<std::byte> destination(arena);
        for (std::size_t round = 0; round < alignment_rounds; ++round) {
            std::fill(destination.begin(), destination.end(), untouched);
            std::vector<std::byte> expected(arena, untouched);
            for (std::size_t i = 0; i < shifts * shifts; ++i) {
                const Transfer transfer(i, round);
                ASSERT_EQ(
                    fabric.pe(from).get(to, transfer.source, destination.data() + transfer.landing(), transfer.bytes),
                    Code::ok);
                copy_into(expected, transfer.landing(), std::span(source).subspan(transfer.source, transfer.bytes));
            }
            ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
            expect_arena(destination, expected, round, "get");
        }
    }
}

// Transfers that begin before a page border of the target and end on it, just before it or beyond it.
void transfers_across_a_page_border_are_whole(Fabric& fabric) {
    constexpr std::size_t page = 4096;
    constexpr std::size_t spread = 3 * page;  // one transfer per border, away from its neighbours
    constexpr std::size_t sizes[] = {1, 2, 4, 8, 16, 63, 64, 65, 66, 129, page, page + 1};
    for (const auto& [from, to] : representative_pairs(fabric, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        Pe& origin = fabric.pe(from);
        for (const std::size_t bytes : sizes) {
            const auto source = pattern(bytes, bytes);
            const auto memory = fabric.pe(to).memory().first(shifts * spread);
            std::fill(memory.begin(), memory.end(), untouched);
            std::vector<std::byte> expected(memory.size(), untouched);
            const auto place = [](std::size_t before) { return before * spread + page - before; };
            for (std::size_t before = 0; before < shifts; ++before) {
                ASSERT_EQ(origin.put(to, place(before), source.data(), bytes), Code::ok);
                copy_into(expected, place(before), source);
            }
            ASSERT_EQ(origin.quiet(), Code::ok);
            const auto wrong = first_difference(memory, expected);
            ASSERT_FALSE(wrong.has_value()) << "put of " << bytes << " bytes: byte " << *wrong % spread << " of "
                                            << spread << ", " << *wrong / spread << " bytes before the border";
            std::vector<std::byte> back(shifts * bytes);
            for (std::size_t before = 0; before < shifts; ++before)
                ASSERT_EQ(origin.get(to, place(before), back.data() + before * bytes, bytes), Code::ok);
            ASSERT_EQ(origin.quiet(), Code::ok);
            for (std::size_t before = 0; before < shifts; ++before)
                ASSERT_TRUE(same(std::span(back).subspan(before * bytes, bytes), source))
                    << "get of " << bytes << " bytes, " << before << " bytes before the border";
        }
    }
}

// Two values of a word that differ in every byte, so that a mixture is recognised.
template <class Word>
constexpr std::array<Word, 2> word_values{static_cast<Word>(0x1122334455667788U),
                                          static_cast<Word>(~std::uint64_t{0x1122334455667788U})};

constexpr std::size_t watched_at = 4096 + 64;
constexpr std::size_t watched_signal_at = 8192 + 64;
constexpr std::uint64_t change_count = 10'000;
constexpr std::uint64_t changes_in_flight = 64;

template <class Word>
class WatchedWord {
public:
    WatchedWord(Pe& pe, std::size_t offset) : word_(*reinterpret_cast<Word*>(pe.memory().data() + offset)) {
        store(word_values<Word>[0]);
    }
    void store(Word value) const { std::atomic_ref<Word>(word_).store(value, std::memory_order_relaxed); }
    // Counts the loads that return neither value.
    void look() {
        const Word seen = std::atomic_ref<Word>(word_).load(std::memory_order_relaxed);
        if (seen == word_values<Word>[0] || seen == word_values<Word>[1]) return;
        if (torn_++ == 0) first_torn_ = seen;
    }
    void expect_never_torn(const char* what) const {
        EXPECT_EQ(torn_, 0U) << what << ", " << sizeof(Word) << " bytes: the first torn value is 0x" << std::hex
                             << std::uint64_t{first_torn_};
    }

private:
    Word& word_;
    std::uint64_t torn_ = 0;
    Word first_torn_ = 0;
};

// Runs `post(i)` `change_count` times in another thread, with a quiet at intervals, and `look` in this one meanwhile.
// This thread makes no transport call: the sender's waits make progress for all PEs.
template <class Post, class Look>
void watch(Pe& from, Post post, Look look) {
    std::atomic<bool> finished{false};
    std::thread sender([&] {
        for (std::uint64_t i = 0; i < change_count; ++i) {
            Code code = post(i);
            if (code == Code::ok && i % changes_in_flight == changes_in_flight - 1) code = from.quiet();
            EXPECT_EQ(code, Code::ok) << "change " << i;
            if (code != Code::ok) break;
        }
        EXPECT_EQ(from.quiet(), Code::ok);
        finished.store(true, std::memory_order_release);
    });
    while (!finished.load(std::memory_order_acquire)) look();
    sender.join();
    look();
}

template <class Word>
void watch_puts(Fabric& fabric) {
    const auto [from, to] = representative_pair(fabric, NPUSHMEM_CAP_PUT);
    const auto words = fabric.pe(to).memory().subspan(watched_at - 8, 24);
    std::fill(words.begin(), words.end(), untouched);
    WatchedWord<Word> watched(fabric.pe(to), watched_at);
    const auto values = word_values<Word>;
    Pe& origin = fabric.pe(from);
    const int target = to;
    watch(
        origin, [&](std::uint64_t i) { return origin.put(target, watched_at, &values[i % 2], sizeof(Word)); },
        [&] { watched.look(); });
    watched.expect_never_torn("put");
    const auto is_untouched = [](std::byte byte) { return byte == untouched; };
    EXPECT_TRUE(std::all_of(words.begin(), words.begin() + 8, is_untouched));
    EXPECT_TRUE(std::all_of(words.begin() + 8 + sizeof(Word), words.end(), is_untouched));
}

void aligned_puts_of_a_word_are_never_seen_torn(Fabric& fabric) {
    watch_puts<std::uint32_t>(fabric);
    watch_puts<std::uint64_t>(fabric);
}

void words_of_put_signal_are_never_seen_torn(Fabric& fabric) {
    const auto [from, to] = representative_pair(fabric, NPUSHMEM_CAP_PUT_SIGNAL);
    WatchedWord<std::uint64_t> data(fabric.pe(to), watched_at);
    WatchedWord<std::uint64_t> signal(fabric.pe(to), watched_signal_at);
    auto values = word_values<std::uint64_t>;
    Pe& origin = fabric.pe(from);
    npushmem_put_signal op{};
    op.signal_remote = origin.remote(to);
    op.signal_offset = watched_signal_at;
    op.operation = NPUSHMEM_SIGNAL_SET;
    const int target = to;
    watch(
        origin,
        [&](std::uint64_t i) {
            op.data = origin.rma(target, watched_at, &values[i % 2], 8);
            op.signal = values[i % 2];
            return origin.put_signal(op);
        },
        [&] {
            data.look();
            signal.look();
        });
    data.expect_never_torn("data of put_signal");
    signal.expect_never_torn("signal");
}

// The target changes the word while the origin gets it.
template <class Word>
void get_changing_word(Fabric& fabric) {
    const auto [from, to] = representative_pair(fabric, NPUSHMEM_CAP_GET);
    const WatchedWord<Word> changing(fabric.pe(to), watched_at);
    const auto values = word_values<Word>;
    Pe& origin = fabric.pe(from);
    std::vector<Word> fetched(change_count, Word{0});
    const int target = to;
    std::uint64_t stores = 0;
    watch(
        origin, [&](std::uint64_t i) { return origin.get(target, watched_at, &fetched[i], sizeof(Word)); },
        [&] { changing.store(values[++stores % 2]); });
    const auto torn =
        std::find_if(fetched.begin(), fetched.end(), [&](Word word) { return word != values[0] && word != values[1]; });
    EXPECT_TRUE(torn == fetched.end()) << "get " << torn - fetched.begin() << " of " << sizeof(Word)
                                       << " bytes returned a value that the word never had";
}

void gets_of_a_changing_word_are_never_torn(Fabric& fabric) {
    get_changing_word<std::uint32_t>(fabric);
    get_changing_word<std::uint64_t>(fabric);
}

}  // namespace

std::vector<Case> alignment_cases() {
    constexpr auto put_get = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET;
    return {
        {"puts_of_every_alignment_change_only_their_target", NPUSHMEM_CAP_PUT,
         puts_of_every_alignment_change_only_their_target},
        {"gets_of_every_alignment_change_only_their_destination", NPUSHMEM_CAP_GET,
         gets_of_every_alignment_change_only_their_destination},
        {"transfers_across_a_page_border_are_whole", put_get, transfers_across_a_page_border_are_whole},
        {"aligned_puts_of_a_word_are_never_seen_torn", NPUSHMEM_CAP_PUT, aligned_puts_of_a_word_are_never_seen_torn},
        {"words_of_put_signal_are_never_seen_torn", NPUSHMEM_CAP_PUT_SIGNAL, words_of_put_signal_are_never_seen_torn},
        {"gets_of_a_changing_word_are_never_torn", NPUSHMEM_CAP_GET, gets_of_a_changing_word_are_never_torn}};
}

}  // namespace npushmem::contract
