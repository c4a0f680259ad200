// SPDX-License-Identifier: BSD-3-Clause
// The dispatch end to end, in one process, compared byte by byte with a plain reference; and whole layers: dispatch,
// experts, combine.
#include "core/moe/dispatch/dispatch.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

std::vector<CopyRoute> copy_routes() { return {CopyRoute::staged, CopyRoute::direct, CopyRoute::streaming}; }

TEST(Dispatch, EveryRowLengthAndElementTypeByEveryRoute) {
    for (const std::int64_t hidden : {1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168}) {
        for (const ElementType type : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            // Other types change the row's bytes and nothing else.
            if (type != ElementType::bfloat16 && hidden > 1000) continue;
            for (const CopyRoute route : copy_routes()) {
                const CaseShape shape{3, 5, 2, 4, static_cast<std::uint32_t>(hidden)};
                CombineConfig config = layer_config(shape, hidden);
                config.input = config.output = type;
                config.route = config.dispatch_route = route;
                SCOPED_TRACE(fmt::format("hidden {} {} {}", hidden, name_of(type), name_of(route)));
                expect_layers(shape, config, 2);
            }
        }
    }
}

TEST(Dispatch, EveryNumberOfRanksAndExpertsOnFewCoresAndMany) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const std::int32_t experts_per_rank : {1, 2, 64}) {
            for (const int blocks : {1, 20}) {
                const CaseShape shape{ranks, ranks * experts_per_rank, 3, 6, 11};
                SCOPED_TRACE(fmt::format("{} ranks, {} experts each, {} blocks", ranks, experts_per_rank, blocks));
                expect_layers(shape, layer_config(shape, 33), 2, blocks);
            }
        }
    }
}

TEST(Dispatch, RowsLongerThanAStagingBuffer) {
    const CaseShape shape{2, 2, 2, 3, 5};
    CombineConfig config = layer_config(shape, 40011);
    config.route = config.dispatch_route = CopyRoute::staged;
    expect_layers(shape, config);
}

// The staged route then works on the tables in memory.
TEST(Dispatch, TablesThatDoNotFitTheUnifiedBuffer) {
    const CaseShape shape{2, 24, 8, 3200, 49};
    CombineConfig config = layer_config(shape, 4);
    config.dispatch_route = CopyRoute::staged;
    ASSERT_GT(2 * config.slots().value() * sizeof(std::uint32_t), std::size_t{npu::DeviceConfig{}.ub_bytes});
    expect_layers(shape, config, 2);
}

TEST(Dispatch, FewerExpertsThanRanks) {
    const CaseShape shape{5, 2, 2, 4, 3};
    expect_layers(shape, layer_config(shape, 16));
}

TEST(Dispatch, EmptyExpertsFirstLastAndAll) {
    for (const auto& [first, last, absent] : {std::tuple{2, -1, 0.1}, {0, 5, 0.1}, {0, -1, 1.0}, {0, -1, 0.5}}) {
        CaseShape shape{4, 8, 3, 6, 21};
        shape.first_used = first;
        shape.last_used = last;
        shape.absent = absent;
        expect_layers(shape, layer_config(shape, 40));
    }
}

TEST(Dispatch, RanksWithoutTokens) {
    for (const std::int32_t empty : {0, 1, 3}) {
        CaseShape shape{4, 8, 3, 6, 22};
        shape.empty_rank = empty;
        expect_layers(shape, layer_config(shape, 40));
    }
}

TEST(Dispatch, OneExpertChosenSeveralTimesByOneTokenTakesARowEachTime) {
    CaseShape shape{2, 4, 6, 5, 24};
    shape.first_used = shape.last_used = 3;
    shape.absent = 0;
    expect_layers(shape, layer_config(shape, 24));
}

TEST(Dispatch, UnevenTokens) {
    const CaseShape shape{4, 8, 2, 9, 25};
    Routing routing = random_routing(shape);
    for (std::size_t rank = 0; rank < 4; ++rank) {
        routing.expert_ids[rank].resize(2 * (9 - 3 * rank));
        routing.weights[rank].resize(2 * (9 - 3 * rank));
    }
    LayerFixture bench(shape.ranks, layer_config(shape, 40));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 3)) << pe.error();
        EXPECT_EQ(pe.difference(routing, 3), "");
    });
}

TEST(Dispatch, ACapacityThatIsJustEnough) {
    const CaseShape shape{2, 2, 2, 8, 26};
    const Routing routing = random_routing(shape);
    CombineConfig config = layer_config(shape, 40);
    const ExpertPlacement placement(2, 2);
    config.capacity = 0;
    for (const int pe : {0, 1}) {
        const auto rows = build_combine_plan(views_of(routing), placement, pe).value().rows.value();
        config.capacity = std::max(config.capacity, static_cast<std::int64_t>(rows));
    }
    expect_layers(shape, config);
}

// Without barrier or clearing, ranks drift as far as the protocol allows, and every call has another routing.
TEST(Dispatch, ManyLayersInARowWithTheRoutingChanged) {
    const CaseShape shape{4, 8, 2, 3, 26, 0.4};
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = layer_config(shape, 48);
        config.mode = mode;
        LayerFixture bench(shape.ranks, config);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open()) << pe.error();
            for (std::uint32_t call = 0; call < 60; ++call) {
                CaseShape now = shape;
                now.seed += call;
                now.empty_rank = static_cast<std::int32_t>(call % 7);
                const Routing routing = random_routing(now);
                ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
            }
        });
    }
}

TEST(Dispatch, SeveralLayersUnderWayAtATime) {
    const CaseShape shape{3, 6, 2, 5, 30};
    CaseShape other = shape;
    other.seed = 31;
    const Routing routing = random_routing(shape);
    const Routing another = random_routing(other);
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        LayerPe second(pe);
        ASSERT_TRUE(pe.open() && second.open());
        for (std::uint64_t call = 0; call < 6; ++call) {
            ASSERT_TRUE(pe.dispatch(routing, call) && second.dispatch(another, call + 100));
            pe.run_experts(routing, call);
            second.run_experts(another, call + 100);
            ASSERT_TRUE(second.combine() && pe.combine()) << pe.error() << second.error();
            ASSERT_EQ(pe.output_difference(routing) + second.output_difference(another), "");
        }
    });
}

// Ranks 0 and 2 cannot map each other; rank 1 maps both.
TEST(Dispatch, RanksThatAreNotMappedGetTheirRowsThroughTheTransport) {
    const CaseShape shape{3, 6, 2, 5, 36};
    const Routing routing = random_routing(shape);
    LayerFixture bench(shape.ranks, layer_config(shape, 20), 4, /*window=*/false);
    bench.run([&](LayerPe& pe) {
        if (pe.pe() != 1) pe.fabric().unmap(2 - pe.pe());
        ASSERT_TRUE(pe.open()) << pe.error();
        for (std::uint64_t call = 0; call < 5; ++call) ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
        EXPECT_EQ(pe.memory().puts() > 0, pe.pe() != 1);
    });
}

TEST(Dispatch, ReleasesAllItsMemory) {
    const CaseShape shape{2, 4, 2, 5, 31};
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open());
        pe.close();
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

}  // namespace
}  // namespace npushmem::moe
