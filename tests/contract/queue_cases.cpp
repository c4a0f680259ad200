// SPDX-License-Identifier: BSD-3-Clause
// Queues are independent of each other.
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <thread>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

std::uint64_t make_queue(Pe& pe) {
    auto made = pe.transport().create_queue();
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value() : 0;
}

void two_queues_complete_by_themselves(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& origin = fabric.pe(from);
        const std::uint64_t second = make_queue(origin);
        ASSERT_NE(second, origin.queue());
        const std::uint64_t a = 11;
        const std::uint64_t b = 22;
        ASSERT_EQ(origin.put(to, 0, &a, 8), Code::ok);
        ASSERT_EQ(origin.put(to, 8, &b, 8, nullptr, second), Code::ok);
        ASSERT_EQ(origin.quiet(second), Code::ok) << "quiet of the second queue alone";
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 8), b) << "the put of the second queue";
        ASSERT_EQ(origin.quiet(), Code::ok);
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 0), a);
        EXPECT_EQ(origin.transport().destroy_queue(second), Code::ok);
    }
}

// A destroyed queue no longer accesses local memory, and the others continue.
void a_queue_can_go_with_operations_outstanding(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        Pe& origin = fabric.pe(from);
        const std::uint64_t second = make_queue(origin);
        std::vector<std::uint64_t> landing(64, 0);
        for (auto& word : landing) ASSERT_EQ(origin.get(to, 0, &word, 8, nullptr, second), Code::ok);
        ASSERT_EQ(origin.transport().destroy_queue(second), Code::ok) << "with gets outstanding";
        std::fill(landing.begin(), landing.end(), 0x5555);
        const std::uint64_t value = 33;
        ASSERT_EQ(origin.put(to, 16, &value, 8), Code::ok);
        ASSERT_EQ(origin.quiet(), Code::ok);
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 16), value);
        for (const auto word : landing) EXPECT_EQ(word, 0x5555U) << "a destroyed queue still writes";
    }
}

void many_queues_come_and_go(Fabric& fabric) {
    Pe& pe = fabric.pe(0);
    std::vector<std::uint64_t> queues;
    for (int i = 0; i < 100; ++i) queues.push_back(make_queue(pe));
    std::vector<std::uint64_t> sorted = queues;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "two queues have one number";
    for (const auto queue : queues) EXPECT_EQ(pe.quiet(queue), Code::ok);
    for (const auto queue : queues) EXPECT_EQ(pe.transport().destroy_queue(queue), Code::ok);
    for (const auto queue : queues)
        EXPECT_LT(static_cast<int>(pe.transport().destroy_queue(queue)), 0) << "destroyed twice";
}

// Pe's waits are for one thread; here each thread waits by itself.
Code repeated(const std::function<Code()>& call) {
    Deadline deadline;
    Code code = call();
    while (code == Code::again && !deadline.expired()) code = call();
    return code;
}

void put_many(Transport& transport, std::uint64_t queue, const Pe& from, int to, std::uint64_t thread) {
    constexpr std::uint64_t count = 500;
    std::vector<std::uint64_t> values(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        values[i] = thread * 1000 + i;
        const npushmem_rma op = from.rma(to, (thread * count + i) * 8, &values[i], 8);
        ASSERT_EQ(repeated([&] { return transport.put(queue, op, nullptr); }), Code::ok);
        if (i % 16 == 0) {
            ASSERT_EQ(repeated([&] { return transport.quiet(queue); }), Code::ok);
        }
    }
    ASSERT_EQ(repeated([&] { return transport.quiet(queue); }), Code::ok);
}

void threads_use_a_queue_each(Fabric& fabric) {
    constexpr std::uint64_t thread_count = 3;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& origin = fabric.pe(from);
        std::vector<std::uint64_t> queues;
        for (std::uint64_t i = 0; i < thread_count; ++i) queues.push_back(make_queue(origin));
        std::vector<std::thread> threads;
        for (std::uint64_t i = 0; i < thread_count; ++i)
            threads.emplace_back(
                [&origin, &queues, i, target = to] { put_many(origin.transport(), queues[i], origin, target, i); });
        for (auto& thread : threads) thread.join();
        for (std::uint64_t i = 0; i < thread_count * 500; ++i)
            ASSERT_EQ(word_at(fabric.pe(to).memory(), i * 8), i / 500 * 1000 + i % 500)
                << "put " << i % 500 << " of thread " << i / 500;
        for (const auto queue : queues) EXPECT_EQ(origin.transport().destroy_queue(queue), Code::ok);
    }
}

// Many queues to one peer, as with many contexts: each completes its own operations, in any order.
void many_queues_to_one_peer(Fabric& fabric) {
    constexpr std::uint64_t count = 40;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        Pe& origin = fabric.pe(from);
        std::vector<std::uint64_t> queues;
        std::vector<std::uint64_t> values;
        std::vector<std::uint64_t> tokens(count);
        std::vector<std::uint64_t> seen(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            queues.push_back(make_queue(origin));
            values.push_back(7000 + i);
        }
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(origin.put(to, i * 8, &values[i], 8, nullptr, queues[i]), Code::ok);
        for (std::uint64_t i = count; i-- > 0;) {
            ASSERT_EQ(origin.quiet(queues[i]), Code::ok);
            EXPECT_EQ(word_at(fabric.pe(to).memory(), i * 8), values[i]);
            ASSERT_EQ(origin.get(to, i * 8, &seen[i], 8, &tokens[i], queues[i]), Code::ok);
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            if (tokens[i] != 0) {
                ASSERT_EQ(origin.wait(tokens[i], queues[i]), Code::ok);
            }
            EXPECT_EQ(seen[i], values[i]);
            EXPECT_EQ(origin.transport().destroy_queue(queues[i]), Code::ok);
        }
    }
}

// A queue orders and completes its own operations while another queue to the same peer has operations in flight, both
// with fenced data and with non-fetching updates.
void a_second_queue_orders_and_completes_its_own(Fabric& fabric) {
    constexpr std::uint64_t rounds = 10;
    constexpr std::uint64_t data_at = 8192;
    constexpr std::uint64_t data_bytes = 2000;
    constexpr std::uint64_t beside_at = 1 << 20;
    constexpr std::uint64_t share = 6400;  // per round: puts without a fence between them must not overlap
    const std::vector<std::byte> beside(rounds * share, std::byte{7});
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC)) {
        Pe& origin = fabric.pe(from);
        const std::span<std::byte> memory = fabric.pe(to).memory();
        const std::uint64_t second = make_queue(origin);
        set_word(memory, 0, 0);
        set_word(memory, 8, 0);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const auto data = pattern(data_bytes, round);
            const std::uint64_t at = (round - 1) * share;
            ASSERT_EQ(origin.put(to, beside_at + at, beside.data() + at, share), Code::ok);
            ASSERT_EQ(origin.put(to, data_at, data.data(), data.size(), nullptr, second), Code::ok);
            ASSERT_EQ(origin.fence(second), Code::ok);
            npushmem_atomic add = origin.atomic_op(to, 0, NPUSHMEM_ATOMIC_ADD, 8);
            add.operand = 1;
            ASSERT_EQ(origin.atomic(add, nullptr, second), Code::ok);
            ASSERT_EQ(origin.until([&] { return word_at(memory, 0) == round; }), Code::ok);
            EXPECT_TRUE(same(memory.subspan(data_at, data_bytes), data)) << "the update came before what was fenced";
            add.offset = 8;
            ASSERT_EQ(origin.atomic(add, nullptr, second), Code::ok);
            ASSERT_EQ(origin.quiet(second), Code::ok);
            EXPECT_EQ(word_at(memory, 8), round);
        }
        ASSERT_EQ(origin.quiet(), Code::ok);
        EXPECT_TRUE(same(memory.subspan(beside_at, beside.size()), beside));
        EXPECT_EQ(origin.transport().destroy_queue(second), Code::ok);
    }
}

// One thread creates and destroys queues with operations in flight, while another thread continues with its own queue.
void queues_come_and_go_beside_transfers(Fabric& fabric) {
    constexpr std::uint64_t lives = 20;
    constexpr std::uint64_t place = 4000 * 8;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& origin = fabric.pe(from);
        const std::uint64_t steady = make_queue(origin);
        std::thread other([&origin, steady, target = to] { put_many(origin.transport(), steady, origin, target, 0); });
        Transport& transport = origin.transport();
        for (std::uint64_t life = 1; life <= lives; ++life) {
            const std::uint64_t queue = make_queue(origin);
            std::uint64_t value = life;
            const npushmem_rma op = origin.rma(to, place + life * 8, &value, 8);
            EXPECT_EQ(repeated([&] { return transport.put(queue, op, nullptr); }), Code::ok);
            // Every second queue has an outstanding put, which may arrive at any time or never.
            if (life % 2 == 0) {
                EXPECT_EQ(repeated([&] { return transport.quiet(queue); }), Code::ok);
            }
            EXPECT_EQ(transport.destroy_queue(queue), Code::ok);
        }
        other.join();
        for (std::uint64_t life = 2; life <= lives; life += 2)
            EXPECT_EQ(word_at(fabric.pe(to).memory(), place + life * 8), life) << "the put of queue " << life;
        for (std::uint64_t i = 0; i < 500; ++i) ASSERT_EQ(word_at(fabric.pe(to).memory(), i * 8), i);
        EXPECT_EQ(transport.destroy_queue(steady), Code::ok);
    }
}

// Each queue has an outstanding put, while one thread opens further queues.
void queues_close_beside_others_that_open(Fabric& fabric) {
    constexpr std::uint64_t lives = 20;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& origin = fabric.pe(from);
        Transport& transport = origin.transport();
        std::array<std::uint64_t, lives> values{};
        std::vector<std::future<Code>> closed;
        for (std::uint64_t life = 0; life < lives; ++life) {
            const std::uint64_t queue = make_queue(origin);
            const npushmem_rma op = origin.rma(to, life * 8, &values[life], 8);
            EXPECT_EQ(repeated([&] { return transport.put(queue, op, nullptr); }), Code::ok);
            closed.push_back(
                std::async(std::launch::async, [&transport, queue] { return transport.destroy_queue(queue); }));
        }
        for (auto& each : closed) EXPECT_EQ(each.get(), Code::ok) << "with a put outstanding";
    }
}

}  // namespace

std::vector<Case> queue_cases() {
    return {{"two_queues_complete_by_themselves", NPUSHMEM_CAP_PUT, two_queues_complete_by_themselves},
            {"a_queue_can_go_with_operations_outstanding", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET,
             a_queue_can_go_with_operations_outstanding},
            {"many_queues_come_and_go", 0, many_queues_come_and_go},
            {"threads_use_a_queue_each", NPUSHMEM_CAP_PUT, threads_use_a_queue_each},
            {"many_queues_to_one_peer", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, many_queues_to_one_peer},
            {"a_second_queue_orders_and_completes_its_own", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC,
             a_second_queue_orders_and_completes_its_own},
            {"queues_come_and_go_beside_transfers", NPUSHMEM_CAP_PUT, queues_come_and_go_beside_transfers},
            {"queues_close_beside_others_that_open", NPUSHMEM_CAP_PUT, queues_close_beside_others_that_open}};
}

}  // namespace npushmem::contract
