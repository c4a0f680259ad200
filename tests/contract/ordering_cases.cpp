// SPDX-License-Identifier: BSD-3-Clause
// The order guarantees of fence, put_signal and quiet.
#include <gtest/gtest.h>

#include <thread>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::size_t data_at = 4096;
constexpr std::size_t data_bytes = 1000;
constexpr std::size_t flag_at = 64;
constexpr std::size_t seen_at = 128;            // a watcher writes its progress here
constexpr std::size_t watched_words = 1 << 17;  // 1 MiB: its copy takes long enough to be observed
constexpr std::uint64_t rounds = 60;
constexpr std::uint64_t watched_rounds = 25;

using Data = std::vector<std::byte>;

void clear(Pe& pe) {
    std::fill_n(pe.memory().begin() + data_at, data_bytes, std::byte{0});
    set_word(pe.memory(), flag_at, 0);
}

// Waits for the flag at the target; then the data must be visible.
void expect_data_with_flag(Pe& from, Pe& to, const Data& data, std::uint64_t flag) {
    ASSERT_EQ(from.until([&] { return word_at(to.memory(), flag_at) == flag; }), Code::ok) << "the flag did not come";
    EXPECT_TRUE(same(to.memory().subspan(data_at, data_bytes), data)) << "the flag came before its data";
}

// Each round writes data, then `raise` sets the flag to the round's number, then the target checks both.
template <class Raise>
void check_rounds(Fabric& fabric, std::uint64_t needs, Raise raise) {
    for (const auto& [from, to] : fabric.pairs_with(needs)) {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            clear(fabric.pe(to));
            const Data data = pattern(data_bytes, round);
            raise(fabric.pe(from), to, data, round);
            expect_data_with_flag(fabric.pe(from), fabric.pe(to), data, round);
            ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        }
    }
}

// Sends the data in pieces, so that reordering is possible.
void put_in_pieces(Pe& from, int to, const Data& data) {
    constexpr std::size_t piece = 100;
    for (std::size_t at = 0; at < data.size(); at += piece)
        ASSERT_EQ(from.put(to, data_at + at, data.data() + at, std::min(piece, data.size() - at)), Code::ok);
}

void a_fence_orders_puts(Fabric& fabric) {
    check_rounds(fabric, NPUSHMEM_CAP_PUT, [](Pe& from, int to, const Data& data, const std::uint64_t& flag) {
        put_in_pieces(from, to, data);
        ASSERT_EQ(from.fence(), Code::ok);
        ASSERT_EQ(from.put(to, flag_at, &flag, sizeof flag), Code::ok);
    });
}

void a_fence_orders_atomics_after_puts(Fabric& fabric) {
    const auto needs = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC;
    check_rounds(fabric, needs, [](Pe& from, int to, const Data& data, const std::uint64_t& flag) {
        put_in_pieces(from, to, data);
        ASSERT_EQ(from.fence(), Code::ok);
        npushmem_atomic op = from.atomic_op(to, flag_at, flag % 2 == 0 ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET, 8);
        op.operand = flag;
        ASSERT_EQ(from.atomic(op), Code::ok);
    });
}

void a_fence_orders_fetching_atomics_after_puts(Fabric& fabric) {
    const auto needs = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC;
    std::uint64_t fetched = 0;
    check_rounds(fabric, needs, [&fetched](Pe& from, int to, const Data& data, const std::uint64_t& flag) {
        put_in_pieces(from, to, data);
        ASSERT_EQ(from.fence(), Code::ok);
        npushmem_atomic op = from.atomic_op(to, flag_at, NPUSHMEM_ATOMIC_SWAP, 8);
        op.operand = flag;
        op.result = &fetched;
        ASSERT_EQ(from.atomic(op), Code::ok);
    });
}

void a_signal_comes_after_its_data(Fabric& fabric) {
    check_rounds(fabric, NPUSHMEM_CAP_PUT_SIGNAL, [](Pe& from, int to, const Data& data, const std::uint64_t& flag) {
        npushmem_put_signal op{};
        op.data = from.rma(to, data_at, const_cast<std::byte*>(data.data()), data.size());
        op.signal_remote = from.remote(to);
        op.signal_offset = flag_at;
        op.signal = flag;
        op.operation = flag % 2 == 0 ? NPUSHMEM_SIGNAL_ADD : NPUSHMEM_SIGNAL_SET;
        ASSERT_EQ(from.put_signal(op), Code::ok);
    });
}

void a_fence_orders_put_signal_after_puts(Fabric& fabric) {
    const auto needs = NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_PUT;
    check_rounds(fabric, needs, [](Pe& from, int to, const Data& data, const std::uint64_t& flag) {
        put_in_pieces(from, to, data);
        ASSERT_EQ(from.fence(), Code::ok);
        npushmem_put_signal op{};
        op.data = from.rma(to, 0, nullptr, 0);
        op.signal_remote = from.remote(to);
        op.signal_offset = flag_at;
        op.signal = flag;
        ASSERT_EQ(from.put_signal(op), Code::ok);
    });
}

void a_get_after_a_fence_sees_the_put(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const Data data = pattern(data_bytes, round);
            Data back(data_bytes);
            put_in_pieces(fabric.pe(from), to, data);
            ASSERT_EQ(fabric.pe(from).fence(), Code::ok);
            ASSERT_EQ(fabric.pe(from).get(to, data_at, back.data(), back.size()), Code::ok);
            ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
            EXPECT_TRUE(same(back, data)) << "the get does not see the put";
        }
    }
}

// A chain: each flag follows a fence, so it may be visible only with all earlier ones.
void fences_form_a_chain(Fabric& fabric) {
    constexpr std::uint64_t links = 50;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& origin = fabric.pe(from);
        const auto memory = fabric.pe(to).memory();
        std::vector<std::uint64_t> ones(links, 1);
        for (std::uint64_t i = 0; i < links; ++i) set_word(memory, data_at + i * 8, 0);
        for (std::uint64_t i = 0; i < links; ++i) {
            ASSERT_EQ(origin.put(to, data_at + i * 8, &ones[i], 8), Code::ok);
            ASSERT_EQ(origin.fence(), Code::ok);
        }
        // Reads from the last to the first: if a value is visible, all earlier ones must be visible too.
        const auto unbroken = [&] {
            bool later = false;
            for (std::uint64_t i = links; i-- > 0;) {
                const bool here = word_at(memory, data_at + i * 8) != 0;
                EXPECT_TRUE(here || !later) << "link " << i << " is missing behind a later one";
                later = later || here;
            }
            return word_at(memory, data_at + (links - 1) * 8) != 0;
        };
        ASSERT_EQ(origin.until(unbroken), Code::ok);
        ASSERT_EQ(origin.quiet(), Code::ok);
    }
}

// Watches the target while another thread writes to it. One thread alone cannot test this, because it sees its own
// stores in order. `send` sets the flag from round - 1 to round.
template <class Send>
void send_rounds(Pe& from, Pe& to, Send send) {
    std::vector<std::uint64_t> data(watched_words);
    for (std::uint64_t round = 1; round <= watched_rounds; ++round) {
        std::fill(data.begin(), data.end(), round);
        send(from, to.number(), data, round);
        EXPECT_EQ(from.quiet(), Code::ok);
        // The next round would overwrite the data under test.
        ASSERT_EQ(from.until([&] { return word_at(to.memory(), seen_at) == round; }), Code::ok);
    }
}

// Two different PEs if possible, else one PE twice.
std::pair<int, int> distant_pair(const Fabric& fabric, std::uint64_t needs) {
    const auto pairs = fabric.pairs_with(needs);
    const auto found =
        std::find_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first != pair.second; });
    return found != pairs.end() ? *found : pairs.at(0);
}

template <class Send>
void check_under_watch(Fabric& fabric, std::uint64_t needs, Send send) {
    const auto [from, to] = distant_pair(fabric, needs);
    const auto memory = fabric.pe(to).memory();
    clear(fabric.pe(to));
    std::thread sender(
        [&origin = fabric.pe(from), &target = fabric.pe(to), send] { send_rounds(origin, target, send); });
    for (std::uint64_t round = 1; round <= watched_rounds; ++round) {
        Deadline deadline;  // one per round: the total time does not matter
        while (word_at(memory, flag_at) < round && !deadline.expired()) std::this_thread::yield();
        if (word_at(memory, flag_at) < round) break;  // the sender has timed out, or will
        for (std::size_t i = watched_words; i-- > 0;) {
            if (word_at(memory, data_at + i * 8) == round) continue;
            ADD_FAILURE() << "word " << i << " came after the flag of round " << round;
            break;  // the others show no more
        }
        set_word(memory, seen_at, round);
    }
    sender.join();
}

void a_watcher_never_sees_a_signal_before_its_data(Fabric& fabric) {
    const auto send = [](Pe& from, int to, std::vector<std::uint64_t>& data, std::uint64_t) {
        npushmem_put_signal op{};
        op.data = from.rma(to, data_at, data.data(), data.size() * 8);
        op.signal_remote = from.remote(to);
        op.signal_offset = flag_at;
        op.signal = 1;
        op.operation = NPUSHMEM_SIGNAL_ADD;
        EXPECT_EQ(from.put_signal(op), Code::ok);
    };
    check_under_watch(fabric, NPUSHMEM_CAP_PUT_SIGNAL, send);
}

void a_watcher_never_sees_a_flag_before_what_was_fenced(Fabric& fabric) {
    const auto send = [](Pe& from, int to, std::vector<std::uint64_t>& data, std::uint64_t round) {
        EXPECT_EQ(from.put(to, data_at, data.data(), data.size() * 8), Code::ok);
        EXPECT_EQ(from.fence(), Code::ok);
        npushmem_atomic op = from.atomic_op(to, flag_at, NPUSHMEM_ATOMIC_SET, 8);
        op.operand = round;
        EXPECT_EQ(from.atomic(op), Code::ok);
    };
    check_under_watch(fabric, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC, send);
}

void quiet_means_delivered(Fabric& fabric) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        const Data data = pattern(data_bytes, round);
        for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) clear(fabric.pe(to));
        for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) put_in_pieces(fabric.pe(from), to, data);
        for (int pe = 0; pe < fabric.npes(); ++pe) ASSERT_EQ(fabric.pe(pe).quiet(), Code::ok);
        for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT))
            EXPECT_TRUE(same(fabric.pe(to).memory().subspan(data_at, data_bytes), data))
                << "quiet has returned before the data came";
    }
}

}  // namespace

std::vector<Case> ordering_cases() {
    constexpr auto put_atomic = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC;
    constexpr auto put_both = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_PUT_SIGNAL;
    return {{"a_fence_orders_puts", NPUSHMEM_CAP_PUT, a_fence_orders_puts},
            {"a_fence_orders_atomics_after_puts", put_atomic, a_fence_orders_atomics_after_puts},
            {"a_fence_orders_fetching_atomics_after_puts", put_atomic, a_fence_orders_fetching_atomics_after_puts},
            {"a_signal_comes_after_its_data", NPUSHMEM_CAP_PUT_SIGNAL, a_signal_comes_after_its_data},
            {"a_fence_orders_put_signal_after_puts", put_both, a_fence_orders_put_signal_after_puts},
            {"a_get_after_a_fence_sees_the_put", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, a_get_after_a_fence_sees_the_put},
            {"fences_form_a_chain", NPUSHMEM_CAP_PUT, fences_form_a_chain},
            {"a_watcher_never_sees_a_signal_before_its_data", NPUSHMEM_CAP_PUT_SIGNAL,
             a_watcher_never_sees_a_signal_before_its_data},
            {"a_watcher_never_sees_a_flag_before_what_was_fenced", put_atomic,
             a_watcher_never_sees_a_flag_before_what_was_fenced},
            {"quiet_means_delivered", NPUSHMEM_CAP_PUT, quiet_means_delivered}};
}

}  // namespace npushmem::contract
