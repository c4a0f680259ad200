// SPDX-License-Identifier: BSD-3-Clause
// Rules that the seeded defects of tests/contract/mutants have shown to be untested: completion and fences of every
// kind of operation, tokens, signals, descriptors, the reach of many PEs.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <iterator>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t every_operation =
    NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL;

npushmem_put_signal signal_op(const Pe& from, int to, std::uint64_t offset, std::uint64_t value,
                              std::uint32_t operation) {
    npushmem_put_signal op{};
    op.data = from.rma(to, 0, nullptr, 0);
    op.signal_remote = from.remote(to);
    op.signal_offset = offset;
    op.signal = value;
    op.operation = operation;
    return op;
}

npushmem_atomic add_op(const Pe& from, int to, std::uint64_t offset, std::uint64_t value, std::uint64_t* fetched) {
    npushmem_atomic op =
        from.atomic_op(to, offset, fetched != nullptr ? NPUSHMEM_ATOMIC_FETCH_ADD : NPUSHMEM_ATOMIC_ADD, 8);
    op.operand = value;
    op.result = fetched;
    return op;
}

bool offers_add(const Reach& reach) {
    return (reach.atomic_64 >> NPUSHMEM_ATOMIC_ADD & reach.atomic_64 >> NPUSHMEM_ATOMIC_FETCH_ADD & 1) != 0;
}

// One quiet completes and delivers operations of every kind that were posted together.
void quiet_covers_every_operation(Fabric& fabric) {
    constexpr std::uint64_t rounds = 20;
    constexpr std::size_t data_at = 4096;
    constexpr std::size_t data_bytes = 3000;
    for (const auto& [from, to] : fabric.pairs_with(every_operation)) {
        Pe& pe = fabric.pe(from);
        const std::span<std::byte> memory = fabric.pe(to).memory();
        if (!offers_add(pe.reach(to))) continue;
        set_word(memory, 64, 0);
        set_word(memory, 72, 5);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const auto data = pattern(data_bytes, round);
            std::uint64_t seen = 0;
            std::uint64_t fetched = ~std::uint64_t{0};
            npushmem_put_signal op = signal_op(pe, to, 56, round, NPUSHMEM_SIGNAL_SET);
            op.data = pe.rma(to, data_at, const_cast<std::byte*>(data.data()), data.size());
            set_word(memory, 48, round * 7);
            EXPECT_EQ(pe.put(to, 40, &round, 8), Code::ok);
            EXPECT_EQ(pe.get(to, 48, &seen, 8), Code::ok);
            EXPECT_EQ(pe.atomic(add_op(pe, to, 64, 1, nullptr)), Code::ok);
            EXPECT_EQ(pe.atomic(add_op(pe, to, 72, 1, &fetched)), Code::ok);
            EXPECT_EQ(pe.put_signal(op), Code::ok);
            EXPECT_EQ(pe.quiet(), Code::ok);
            EXPECT_EQ(word_at(memory, 40), round) << "put";
            EXPECT_EQ(seen, round * 7) << "get";
            EXPECT_EQ(word_at(memory, 64), round) << "atomic";
            EXPECT_EQ(fetched, round + 4) << "fetching atomic";
            EXPECT_EQ(word_at(memory, 72), round + 5) << "fetching atomic";
            EXPECT_EQ(word_at(memory, 56), round) << "signal of a put_signal";
            EXPECT_TRUE(same(memory.subspan(data_at, data_bytes), data)) << "data of a put_signal";
        }
    }
}

// Each kind of update, then a fence, then a put of a flag: with the flag the update is there.
void a_fence_orders_every_update_before_puts(Fabric& fabric) {
    constexpr std::uint64_t rounds = 40;
    for (const auto& [from, to] : fabric.pairs_with(every_operation)) {
        Pe& pe = fabric.pe(from);
        const std::span<std::byte> memory = fabric.pe(to).memory();
        if (!offers_add(pe.reach(to))) continue;
        for (const std::size_t word : {8, 16, 24, 32}) set_word(memory, word, 0);
        std::uint64_t fetched = 0;
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            EXPECT_EQ(pe.atomic(add_op(pe, to, 8, 1, nullptr)), Code::ok);
            EXPECT_EQ(pe.atomic(add_op(pe, to, 16, 1, &fetched)), Code::ok);
            EXPECT_EQ(pe.put_signal(signal_op(pe, to, 24, round, NPUSHMEM_SIGNAL_SET)), Code::ok);
            EXPECT_EQ(pe.fence(), Code::ok);
            EXPECT_EQ(pe.put(to, 32, &round, 8), Code::ok);
            EXPECT_EQ(pe.until([&] { return word_at(memory, 32) == round; }), Code::ok) << "the flag did not come";
            EXPECT_EQ(word_at(memory, 8), round) << "the flag came before an atomic";
            EXPECT_EQ(word_at(memory, 16), round) << "the flag came before a fetching atomic";
            EXPECT_EQ(word_at(memory, 24), round) << "the flag came before a signal";
            ASSERT_EQ(pe.quiet(), Code::ok);
        }
    }
}

// Several tokens are outstanding; each stands for its own operation.
void tokens_complete_one_by_one(Fabric& fabric) {
    constexpr std::size_t count = 24;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_GET)) {
        Pe& pe = fabric.pe(from);
        std::array<std::uint64_t, count> seen{};
        std::array<std::uint64_t, count> tokens{};
        for (std::size_t i = 0; i < count; ++i) set_word(fabric.pe(to).memory(), i * 8, i + 100);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(pe.get(to, i * 8, &seen[i], 8, &tokens[i]), Code::ok);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t next = i % 2 == 0 ? i / 2 : count - 1 - i / 2;  // from both ends
            EXPECT_EQ(pe.wait(tokens[next]), Code::ok);
            EXPECT_EQ(seen[next], next + 100) << "the token of get " << next << " was complete before its data came";
        }
        EXPECT_EQ(pe.quiet(), Code::ok);
    }
}

void signals_are_set_and_added(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT_SIGNAL)) {
        Pe& pe = fabric.pe(from);
        const std::span<std::byte> memory = fabric.pe(to).memory();
        const auto neighbours_unchanged = [&] { return word_at(memory, 80) == 1 && word_at(memory, 96) == 2; };
        set_word(memory, 80, 1);
        set_word(memory, 88, ~std::uint64_t{0});
        set_word(memory, 96, 2);
        for (const std::uint64_t value : {std::uint64_t{3}, std::uint64_t{1} << 40})
            ASSERT_EQ(pe.put_signal(signal_op(pe, to, 88, value, NPUSHMEM_SIGNAL_ADD)), Code::ok);
        ASSERT_EQ(pe.quiet(), Code::ok);
        EXPECT_EQ(word_at(memory, 88), (std::uint64_t{1} << 40) + 2) << "after two additions";
        ASSERT_EQ(pe.put_signal(signal_op(pe, to, 88, 17, NPUSHMEM_SIGNAL_SET)), Code::ok);
        ASSERT_EQ(pe.quiet(), Code::ok);
        EXPECT_EQ(word_at(memory, 88), 17U) << "after it was set";
        EXPECT_TRUE(neighbours_unchanged());
    }
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Libraries may keep descriptors from the first PEs of a process; further PEs add none. Meanwhile the PEs of `fabric`
// may still accept connections of each other, which are fewer than the lives.
void closing_leaves_no_descriptor(Fabric& fabric) {
    constexpr int lives = 24;
    const auto live = [&] {
        auto others = Fabric::make(fabric.subject(), 2);
        ASSERT_TRUE(others.ok()) << others.status().message();
    };
    live();
    live();
    const std::ptrdiff_t before = open_descriptors();
    for (int i = 0; i < lives; ++i) live();
    EXPECT_LT(open_descriptors(), before + lives) << "each life of two PEs leaves descriptors";
}

// What a PE offers to itself, and to a neighbour, does not depend on the number of PEs. Other cases skip what cannot be
// reached.
void more_pes_are_reached_as_few_are(Fabric& fabric) {
    constexpr int npes = 16;
    auto made = Fabric::make(fabric.subject(), npes);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (int from = 0; from + 1 < npes; ++from)
        for (const int to : {from, from + 1}) {
            const Reach& reach = made.value()->pe(from).reach(to);
            EXPECT_EQ(reach.capabilities, fabric.pe(0).reach(to - from).capabilities)
                << "PE " << from << " to " << to << ": " << reach.why;
        }
}

}  // namespace

std::vector<Case> strictness_cases() {
    return {{"quiet_covers_every_operation", every_operation, quiet_covers_every_operation},
            {"a_fence_orders_every_update_before_puts", every_operation, a_fence_orders_every_update_before_puts},
            {"tokens_complete_one_by_one", NPUSHMEM_CAP_GET, tokens_complete_one_by_one},
            {"signals_are_set_and_added", NPUSHMEM_CAP_PUT_SIGNAL, signals_are_set_and_added},
            {"closing_leaves_no_descriptor", 0, closing_leaves_no_descriptor},
            {"more_pes_are_reached_as_few_are", 0, more_pes_are_reached_as_few_are}};
}

}  // namespace npushmem::contract
