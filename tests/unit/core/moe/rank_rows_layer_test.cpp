// SPDX-License-Identifier: BSD-3-Clause
// Whole layers with one row per (token, rank), compared byte by byte with a scalar reference of the documented tree.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

CombineConfig per_rank(const CaseShape& shape, std::int64_t hidden) {
    CombineConfig config = layer_config(shape, hidden);
    config.rows_per = RowsPer::rank;
    return config;
}

TEST(RowsPerRank, EveryModeRouteAndElementType) {
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        for (const ElementType type : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            for (const CopyRoute route : {CopyRoute::staged, CopyRoute::direct, CopyRoute::streaming}) {
                const CaseShape shape{3, 7, 5, 9, 41};
                CombineConfig config = per_rank(shape, 133);
                config.mode = mode;
                config.chunk_tokens = 4;
                config.route = config.dispatch_route = route;
                config.input = type;
                config.output = type == ElementType::half ? ElementType::float32 : type;
                SCOPED_TRACE(fmt::format("{}, {}, {}", name_of(mode), name_of(route), name_of(type)));
                expect_layers(shape, config, 2);
            }
        }
    }
}

TEST(RowsPerRank, EveryNumberOfRanksExpertsAndChoicesOnFewCoresAndMany) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const auto& [experts, top_k] : {std::pair{1, 1}, {2, 3}, {256, 32}, {40, 8}}) {
            for (const int blocks : {1, 20}) {
                const CaseShape shape{ranks, experts, top_k, 5, 43};
                SCOPED_TRACE(fmt::format("{} ranks, {} experts, top-{}, {} blocks", ranks, experts, top_k, blocks));
                expect_layers(shape, per_rank(shape, 33), 2, blocks);
            }
        }
    }
}

TEST(RowsPerRank, LongRowsAndShortOnes) {
    for (const std::int64_t hidden : {1, 16, 1000, 8191}) {
        const CaseShape shape{2, 4, 4, 4, static_cast<std::uint32_t>(hidden)};
        expect_layers(shape, per_rank(shape, hidden), 2);
    }
}

// All tokens to one expert, several times per token; no choices at all; a rank without tokens.
TEST(RowsPerRank, ExtremeRoutings) {
    CaseShape one{3, 6, 6, 5, 44};
    one.first_used = one.last_used = 4;
    one.absent = 0;
    expect_layers(one, per_rank(one, 24));
    CaseShape none{3, 6, 4, 5, 45};
    none.absent = 1.0;
    expect_layers(none, per_rank(none, 24));
    CaseShape empty{3, 6, 4, 5, 46};
    empty.empty_rank = 1;
    expect_layers(empty, per_rank(empty, 24));
}

// Without barrier or clearing, ranks drift as far as the protocol allows, and every call has another routing.
TEST(RowsPerRank, ManyLayersInARowWithTheRoutingChanged) {
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = per_rank({4, 8, 6, 3, 26, 0.4}, 48);
        config.mode = mode;
        LayerFixture bench(4, config);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open()) << pe.error();
            for (std::uint32_t call = 0; call < 40; ++call) {
                CaseShape now{4, 8, 6, 3, 26 + call, 0.4};
                now.empty_rank = static_cast<std::int32_t>(call % 7);
                Routing routing = random_routing(now);
                use_inexact_weights(routing);
                ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
            }
        });
    }
}

// Ranks 0 and 2 cannot map each other; rank 1 maps both.
TEST(RowsPerRank, RanksThatAreNotMappedGetTheirRowsThroughTheTransport) {
    const CaseShape shape{3, 6, 5, 5, 36};
    Routing routing = random_routing(shape);
    use_inexact_weights(routing);
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = per_rank(shape, 20);
        config.mode = mode;
        config.chunk_tokens = 2;
        LayerFixture bench(shape.ranks, config, 4, /*window=*/false);
        bench.run([&](LayerPe& pe) {
            if (pe.pe() != 1) pe.fabric().unmap(2 - pe.pe());
            ASSERT_TRUE(pe.open()) << pe.error();
            for (std::uint64_t call = 0; call < 4; ++call) ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
            EXPECT_EQ(pe.memory().puts() > 0, pe.pe() != 1);
        });
    }
}

TEST(RowsPerRank, ACapacityCountsReceivedRows) {
    CaseShape shape{2, 2, 4, 6, 47};
    shape.absent = 0;
    shape.first_used = 1;
    const Routing routing = random_routing(shape);
    CombineConfig config = per_rank(shape, 24);
    config.capacity = 12;  // for 48 rows of expert 1
    expect_layers(shape, config);
    config.capacity = 11;
    LayerFixture bench(shape.ranks, config);
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open());
        EXPECT_FALSE(pe.dispatch(routing, 1));
        EXPECT_THAT(pe.error(), ::testing::HasSubstr("rank 1: with these 6 rows, rank 1 would hold 12 (12 in all)"));
        EXPECT_THAT(pe.error(), ::testing::Not(::testing::HasSubstr("expert")));
    });
}

TEST(RowsPerRank, RanksThatDisagreeOnItAreRefused) {
    const CaseShape shape{2, 4, 2, 5, 48};
    LayerFixture bench(shape.ranks, layer_config(shape, 24));
    bench.run([&](LayerPe& pe) {
        if (pe.pe() == 1) pe.config().rows_per = RowsPer::rank;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), ::testing::HasSubstr("ranks disagree on rows: rank 0 has 0, rank 1 has 1"));
    });
}

TEST(RowsPerRank, ReleasesAllItsMemory) {
    const CaseShape shape{2, 4, 2, 5, 31};
    LayerFixture bench(shape.ranks, per_rank(shape, 20));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open());
        pe.close();
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

}  // namespace
}  // namespace npushmem::moe
