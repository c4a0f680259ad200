// SPDX-License-Identifier: BSD-3-Clause
// The combine end to end, in one process: one thread per PE, each with its own device, over one array.
#include "core/moe/combine.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "bench/moe/routing_generator.hpp"
#include "tests/unit/core/moe/combine_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::HasSubstr;

std::vector<CopyRoute> routes() { return {CopyRoute::staged, CopyRoute::direct, CopyRoute::streaming}; }

TEST(Combine, EveryRowLengthAndElementTypeByEveryRoute) {
    for (const std::int64_t hidden : {1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168}) {
        for (const ElementType type : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            for (const CopyRoute route : routes()) {
                const CaseShape shape{3, 5, 2, 4, static_cast<std::uint32_t>(hidden)};
                CombineConfig config = config_for(shape, hidden);
                config.input = config.output = type;
                config.route = route;
                SCOPED_TRACE(fmt::format("hidden {} {} {}", hidden, name_of(type), name_of(route)));
                expect_exact(shape, config);
            }
        }
    }
}

TEST(Combine, EveryNumberOfRanksAndExperts) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const std::int32_t experts_per_rank : {1, 2, 8}) {
            const CaseShape shape{ranks, ranks * experts_per_rank, 3, 6, 11};
            SCOPED_TRACE(fmt::format("{} ranks, {} experts each", ranks, experts_per_rank));
            expect_exact(shape, config_for(shape, 33));
        }
    }
}

TEST(Combine, ManyRanksAndManyExpertsOnEach) {
    const CaseShape many_ranks{64, 64, 2, 2, 12};
    expect_exact(many_ranks, config_for(many_ranks, 9), 3, 2);
    const CaseShape many_experts{3, 192, 3, 20, 13};
    expect_exact(many_experts, config_for(many_experts, 33));
}

TEST(Combine, RowsLongerThanAStagingBuffer) {
    const CaseShape shape{2, 2, 2, 3, 5};
    CombineConfig config = config_for(shape, 20011);
    config.route = CopyRoute::staged;
    expect_exact(shape, config);
    config.input = ElementType::float32;
    expect_exact(shape, config);
}

TEST(Combine, MoreExpertsThanOneBatchOfTableColumns) {
    const CaseShape shape{2, 1100, 4, 40, 9};
    expect_exact(shape, config_for(shape, 8));
}

TEST(Combine, FewerExpertsThanRanks) {
    const CaseShape shape{5, 2, 2, 4, 3};
    expect_exact(shape, config_for(shape, 16));
}

TEST(Combine, EmptyExpertsFirstLastAndAll) {
    for (const auto& [first, last, absent] : {std::tuple{2, -1, 0.1}, {0, 5, 0.1}, {0, -1, 1.0}}) {
        CaseShape shape{4, 8, 3, 6, 21};
        shape.first_used = first;
        shape.last_used = last;
        shape.absent = absent;
        expect_exact(shape, config_for(shape, 40));
    }
}

TEST(Combine, RanksWithoutTokens) {
    for (const std::int32_t empty : {0, 1, 3}) {
        CaseShape shape{4, 8, 3, 6, 22};
        shape.empty_rank = empty;
        expect_exact(shape, config_for(shape, 40));
    }
}

// From an even distribution to nearly all tokens at a few experts, over all expert groups and over half of them.
TEST(Combine, EverySkewOfRoutingInEveryMode) {
    for (const double zipf : {0.0, 0.6, 1.0, 1.4}) {
        for (const std::int32_t groups : {1, 4}) {
            GeneratorOptions options;
            options.experts = 16;
            options.groups = groups;
            options.groups_per_token = (groups + 1) / 2;
            options.top_k = 4;
            options.ranks = 4;
            options.tokens = 12;
            options.zipf = zipf;
            const Routing routing = generate_routing(options).value();
            const CaseShape shape{options.ranks, options.experts, options.top_k, options.tokens};
            for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
                CombineConfig config = config_for(shape, 17);
                config.mode = mode;
                config.chunk_tokens = 5;
                SCOPED_TRACE(fmt::format("Zipf {}, {} groups, {}", zipf, groups, name_of(mode)));
                expect_exact(routing, config);
            }
        }
    }
}

TEST(Combine, HalfOfTheChoicesAbsent) {
    CaseShape shape{3, 6, 4, 9, 23};
    shape.absent = 0.5;
    expect_exact(shape, config_for(shape, 64));
}

TEST(Combine, OneExpertChosenSeveralTimesByOneToken) {
    CaseShape shape{2, 4, 6, 5, 24};
    shape.first_used = shape.last_used = 3;
    shape.absent = 0;
    expect_exact(shape, config_for(shape, 24));
}

TEST(Combine, AFewBlocksServeManyRanks) {
    const CaseShape shape{8, 16, 2, 5, 25};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 32), /*blocks=*/1);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        ASSERT_TRUE(pe.combine()) << pe.error();
        EXPECT_EQ(pe.first_difference(1), "");
    });
}

// Without barrier or clearing, random delays let ranks drift as far as the protocol allows. With one buffer instead of
// two, or with signals only to ranks that get rows, the next call would overwrite rows and this test would fail.
TEST(Combine, ManyCallsInARowWithRanksThatDrift) {
    CaseShape shape{4, 8, 2, 3, 26};
    shape.absent = 0.6;
    const Routing routing = random_routing(shape);
    CombineConfig config = config_for(shape, 48);
    config.audit = false;
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        std::minstd_rand random(static_cast<unsigned>(pe.pe()) + 1);
        for (std::uint64_t call = 0; call < 300; ++call) {
            pe.fill(call);
            if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(call), "") << "call " << call;
        }
    });
}

// One rank enters each call long after all others: they must wait for it, and their rows must remain intact.
TEST(Combine, ADelayedReceiverLosesNothing) {
    const CaseShape shape{3, 6, 2, 4, 27};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 100));
    std::atomic<int> entered{0};
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        for (int call = 0; call < 10; ++call) {
            pe.fill(static_cast<std::uint64_t>(call));
            // Relaxed: only paces the test.
            if (pe.pe() != 2) entered.fetch_add(1, std::memory_order_relaxed);
            while (pe.pe() == 2 && entered.load(std::memory_order_relaxed) < 2 * (call + 1)) std::this_thread::yield();
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(static_cast<std::uint64_t>(call)), "");
        }
    });
}

TEST(Combine, RandomPayloadGivesTheReferenceBitsAndTheSameBitsTwice) {
    const CaseShape shape{4, 8, 4, 7, 28};
    const Routing routing = random_routing(shape);
    for (const CopyRoute route : routes()) {
        CombineConfig config = config_for(shape, 300);
        config.route = route;
        CombineFixture bench(shape.ranks, config);
        bench.run([&](CombinePe& pe) {
            ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
            pe.use_random_payload();
            pe.fill(5);
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_EQ(pe.first_difference(5), "");
            const std::vector<std::byte> first = pe.out();
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_EQ(pe.out(), first);
        });
    }
}

TEST(Combine, RoutingMayChangeBetweenCalls) {
    const CaseShape shape{3, 7, 2, 5, 29};
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        for (std::uint32_t seed = 1; seed < 6; ++seed) {
            CaseShape other = shape;
            other.seed = seed;
            other.tokens = static_cast<std::int32_t>(seed);
            const Routing routing = random_routing(other);
            ASSERT_TRUE(pe.route(routing)) << pe.error();
            pe.fill(seed);
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(seed), "");
        }
    });
}

TEST(Combine, SeveralLayersInFlightOnOneDevice) {
    const CaseShape shape{3, 6, 2, 5, 30};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        CombinePe second(pe);
        ASSERT_TRUE(pe.open() && second.open());
        ASSERT_TRUE(pe.route(routing) && second.route(routing));
        for (std::uint64_t call = 0; call < 6; ++call) {
            pe.fill(call);
            second.fill(call + 100);
            ASSERT_TRUE(pe.combine() && second.combine());
            ASSERT_EQ(pe.first_difference(call) + second.first_difference(call + 100), "");
        }
    });
}

TEST(Combine, ReleasesAllItsMemory) {
    const CaseShape shape{2, 4, 2, 5, 31};
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open());
        pe.close();
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

// The caller's own tables: fragments in reverse order, with gaps, and rows inside a fragment reversed.
PlanTables shuffled(const CombinePlan& plan, std::vector<std::int32_t>& offsets, std::vector<std::uint32_t>& slots) {
    offsets.assign(plan.offset_table.size(), 0);
    slots.clear();
    for (std::size_t i = plan.offset_table.size(); i-- > 0;) {
        slots.push_back(no_slot);
        offsets[i] = static_cast<std::int32_t>(slots.size());
        for (std::int32_t row = plan.length_table[i]; row-- > 0;) {
            slots.push_back(plan.slots[static_cast<std::size_t>(plan.offset_table[i] + row)]);
        }
    }
    return {offsets, plan.length_table, slots};
}

TEST(Combine, TablesOfTheCallersOwn) {
    const CaseShape shape{3, 6, 2, 5, 32};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        std::vector<std::int32_t> offsets;
        std::vector<std::uint32_t> slots;
        const Status status = pe.engine().set_plan(shuffled(pe.engine().plan(), offsets, slots));
        ASSERT_TRUE(status.ok()) << status.message();
        pe.fill(4);
        ASSERT_TRUE(pe.combine()) << pe.error();
        EXPECT_EQ(pe.first_difference(4), "");
    });
}

// Ranks 0 and 2 cannot map each other; rank 1 maps both.
TEST(Combine, RanksThatAreNotMappedGetTheirRowsThroughTheTransport) {
    CaseShape shape{3, 6, 2, 5, 36, 0.0};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 20), 4, /*window=*/false);
    bench.run([&](CombinePe& pe) {
        if (pe.pe() != 1) pe.fabric().unmap(2 - pe.pe());
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        for (std::uint64_t call = 0; call < 5; ++call) {
            pe.fill(call);
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(call), "");
        }
        const int expected = pe.pe() == 1 ? 0 : 5 * static_cast<int>(pe.engine().plan().rows_to(2 - pe.pe()).value());
        EXPECT_EQ(pe.memory().puts(), expected);
    });
}

TEST(Combine, AnAbortReachesRanksThatAreNotMapped) {
    const CaseShape shape{2, 6, 2, 5, 38, 0.0};
    const Routing routing = random_routing(shape);
    CombineConfig config = config_for(shape, 20);
    config.timeout = std::chrono::seconds(0);
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        config.mode = mode;
        CombineFixture bench(shape.ranks, config, 4, /*window=*/false);
        bench.run([&](CombinePe& pe) {
            pe.fabric().unmap(1 - pe.pe());
            ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
            pe.fill(1);
            const Status status = pe.engine().combine(pe.pe() == 1 ? nullptr : pe.x_data(), pe.out_data());
            EXPECT_EQ(status.code(), Code::argument);
            EXPECT_THAT(status.message(), HasSubstr(pe.pe() == 1 ? "x is null" : "rank 1 has aborted: moe: x is null"));
        });
    }
}

}  // namespace
}  // namespace npushmem::moe
