// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations, each against a model.
#include <gtest/gtest.h>

#include <thread>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

bool fetching(unsigned operation) { return operation == NPUSHMEM_ATOMIC_FETCH || operation >= NPUSHMEM_ATOMIC_SWAP; }

// The word's value after the operation.
std::uint64_t model(unsigned operation, std::uint64_t old, std::uint64_t operand, std::uint64_t compare) {
    switch (operation) {
        case NPUSHMEM_ATOMIC_SET:
        case NPUSHMEM_ATOMIC_SWAP: return operand;
        case NPUSHMEM_ATOMIC_ADD:
        case NPUSHMEM_ATOMIC_FETCH_ADD: return old + operand;
        case NPUSHMEM_ATOMIC_AND:
        case NPUSHMEM_ATOMIC_FETCH_AND: return old & operand;
        case NPUSHMEM_ATOMIC_OR:
        case NPUSHMEM_ATOMIC_FETCH_OR: return old | operand;
        case NPUSHMEM_ATOMIC_XOR:
        case NPUSHMEM_ATOMIC_FETCH_XOR: return old ^ operand;
        case NPUSHMEM_ATOMIC_COMPARE_SWAP: return old == compare ? operand : old;
        default: return old;
    }
}

struct Try {
    std::uint64_t old;
    std::uint64_t operand;
    std::uint64_t compare;
};
constexpr Try tries[] = {{0, 1, 0},
                         {0xffffffffffffffffU, 1, 5},
                         {0x0123456789abcdefU, 0x00ff00ff00ff00ffU, 0x0123456789abcdefU},
                         {0x7fffffff7fffffffU, 0x8000000180000001U, 0x7fffffff7ffffffeU}};

template <class Word>
void check_one(Pe& from, Pe& to, std::uint8_t operation, const Try& given) {
    constexpr std::size_t offset = 64;
    const auto neighbour = static_cast<Word>(~given.old);
    auto* words = reinterpret_cast<Word*>(to.memory().data() + offset);
    words[0] = words[2] = neighbour;
    words[1] = static_cast<Word>(given.old);
    npushmem_atomic op = from.atomic_op(to.number(), offset + sizeof(Word), operation, sizeof(Word));
    Word result = 0;
    op.operand = given.operand;
    op.compare = static_cast<Word>(given.compare);
    op.result = fetching(operation) ? &result : nullptr;
    std::uint64_t token = 0;
    ASSERT_EQ(from.atomic(op, &token), Code::ok);
    ASSERT_EQ(from.wait(token), Code::ok);
    if (fetching(operation)) {
        EXPECT_EQ(result, static_cast<Word>(given.old)) << "fetched by operation " << int{operation};
    }
    ASSERT_EQ(from.quiet(), Code::ok);
    const auto expected = static_cast<Word>(
        model(operation, static_cast<Word>(given.old), given.operand, static_cast<Word>(given.compare)));
    EXPECT_EQ(words[1], expected) << "operation " << int{operation} << ", " << sizeof(Word) * 8 << " bits";
    EXPECT_TRUE(words[0] == neighbour && words[2] == neighbour) << "a neighbouring word changed";
}

void every_operation_and_width(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
        const Reach& reach = fabric.pe(from).reach(to);
        for (std::uint8_t operation = 0; operation < NPUSHMEM_ATOMIC_COUNT; ++operation) {
            for (const Try& given : tries) {
                if ((reach.atomic_32 >> operation & 1) != 0)
                    check_one<std::uint32_t>(fabric.pe(from), fabric.pe(to), operation, given);
                if ((reach.atomic_64 >> operation & 1) != 0)
                    check_one<std::uint64_t>(fabric.pe(from), fabric.pe(to), operation, given);
            }
        }
    }
}

const char* wrong_sum(std::uint64_t sum, std::uint64_t expected) {
    return sum < expected ? "an addition is missing" : "an addition was executed twice";
}

// All PEs add to a word of PE 0 concurrently; no addition is lost.
void additions_of_all_pes_add_up(Fabric& fabric) {
    constexpr std::uint64_t rounds = 300;
    set_word(fabric.pe(0).memory(), 0, 0);
    std::uint64_t adders = 0;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
        if (to != 0) continue;
        ++adders;
        for (std::uint64_t i = 0; i < rounds; ++i) {
            npushmem_atomic op = fabric.pe(from).atomic_op(0, 0, NPUSHMEM_ATOMIC_ADD, 8);
            op.operand = 1;
            ASSERT_EQ(fabric.pe(from).atomic(op), Code::ok);
        }
    }
    for (int pe = 0; pe < fabric.npes(); ++pe) ASSERT_EQ(fabric.pe(pe).quiet(), Code::ok);
    const std::uint64_t sum = word_at(fabric.pe(0).memory(), 0);
    EXPECT_EQ(sum, adders * rounds) << wrong_sum(sum, adders * rounds);
}

// All fetched values differ, in any order of execution.
void fetched_tickets_are_unique(Fabric& fabric) {
    constexpr std::size_t count = 500;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
        set_word(fabric.pe(to).memory(), 256, 0);
        std::vector<std::uint64_t> tickets(count);
        for (auto& ticket : tickets) {
            npushmem_atomic op = fabric.pe(from).atomic_op(to, 256, NPUSHMEM_ATOMIC_FETCH_ADD, 8);
            op.operand = 1;
            op.result = &ticket;
            ASSERT_EQ(fabric.pe(from).atomic(op), Code::ok);
        }
        ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        std::sort(tickets.begin(), tickets.end());
        for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(tickets[i], i) << (tickets[i] < i ? "a value was fetched twice" : "a value was not fetched");
    }
}

// Each PE runs in its own thread.
void threads_do_not_lose_additions(Fabric& fabric) {
    constexpr std::uint64_t rounds = 2000;
    set_word(fabric.pe(0).memory(), 512, 0);
    std::uint64_t adders = 0;
    std::vector<std::thread> threads;
    for (const auto& pair : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
        if (pair.second != 0) continue;
        ++adders;
        threads.emplace_back([&pe = fabric.pe(pair.first)] {
            npushmem_atomic op = pe.atomic_op(0, 512, NPUSHMEM_ATOMIC_ADD, 8);
            op.operand = 1;
            for (std::uint64_t i = 0; i < rounds; ++i) EXPECT_EQ(pe.atomic(op), Code::ok);
            EXPECT_EQ(pe.quiet(), Code::ok);
        });
    }
    for (auto& thread : threads) thread.join();
    const std::uint64_t sum = word_at(fabric.pe(0).memory(), 512);
    EXPECT_EQ(sum, adders * rounds) << wrong_sum(sum, adders * rounds);
}

}  // namespace

std::vector<Case> atomic_cases() {
    return {{"every_operation_and_width", NPUSHMEM_CAP_ATOMIC, every_operation_and_width},
            {"additions_of_all_pes_add_up", NPUSHMEM_CAP_ATOMIC, additions_of_all_pes_add_up},
            {"fetched_tickets_are_unique", NPUSHMEM_CAP_ATOMIC, fetched_tickets_are_unique},
            {"threads_do_not_lose_additions", NPUSHMEM_CAP_ATOMIC, threads_do_not_lose_additions}};
}

}  // namespace npushmem::contract
