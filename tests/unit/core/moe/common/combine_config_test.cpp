// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/moe/common/combine_config.hpp"

namespace npushmem::moe {

namespace {

using ::testing::HasSubstr;

CombineConfig sound() {
    CombineConfig config;
    config.experts = 256;
    config.top_k = 8;
    config.hidden = 7168;
    config.max_tokens = 128;
    return config;
}

template <class Change>
Status changed(const Change& change) {
    CombineConfig config = sound();
    change(config);
    return config.validate();
}

TEST(CombineConfig, SizesAreComputedInSixtyFourBits) {
    CombineConfig config = sound();
    EXPECT_TRUE(config.validate().ok());
    EXPECT_EQ(config.row_bytes().value(), 14336U);
    config.max_tokens = 1 << 24;
    EXPECT_EQ(bytes_of(config.slots(), config.row_bytes()).value(), (std::uint64_t{1} << 27) * 14336);
}

TEST(CombineConfig, ReportsEveryValueOutOfRange) {
    EXPECT_THAT(changed([](auto& c) { c.experts = 0; }).message(), HasSubstr("experts is 0"));
    EXPECT_THAT(changed([](auto& c) { c.top_k = 65; }).message(), HasSubstr("top_k is 65"));
    EXPECT_THAT(changed([](auto& c) { c.hidden = -1; }).message(), HasSubstr("hidden is -1"));
    EXPECT_THAT(changed([](auto& c) { c.max_tokens = 0; }).message(), HasSubstr("max_tokens is 0"));
    EXPECT_THAT(changed([](auto& c) { c.input = ElementType{9}; }).message(), HasSubstr("input type is 9"));
    EXPECT_THAT(changed([](auto& c) { c.output = ElementType{0}; }).message(), HasSubstr("output type is 0"));
    const Status mode = changed([](auto& c) { c.mode = CombineMode{3}; });
    EXPECT_EQ(mode.code(), Code::unsupported);
    EXPECT_THAT(mode.message(), HasSubstr("use 0 (direct), 1 (chunked) or 2 (stream)"));
    EXPECT_TRUE(changed([](auto& c) { c.capacity = fixed_slots; }).ok());
    EXPECT_THAT(changed([](auto& c) { c.capacity = -2; }).message(), HasSubstr("capacity is -2"));
    EXPECT_THAT(changed([](auto& c) { c.expert_alignment = 0; }).message(), HasSubstr("expert_alignment is 0"));
    EXPECT_THAT(changed([](auto& c) { c.expert_alignment = (1 << 20) + 1; }).message(),
                HasSubstr("must be from 1 to 1048576"));
    EXPECT_THAT(changed([](auto& c) { c.capacity = 1LL << 31; }).message(), HasSubstr("must be from 0 to 2147483647"));
    EXPECT_THAT(changed([](auto& c) { c.ring_place = RingPlace{2}; }).message(),
                HasSubstr("the ring's place is 2, must be from 0 to 1"));
    EXPECT_THAT(changed([](auto& c) { c.chunk_tokens = 0; }).message(), HasSubstr("chunk_tokens is 0"));
    EXPECT_THAT(changed([](auto& c) { c.ring_rows = -1; }).message(), HasSubstr("ring_rows is -1"));
    EXPECT_THAT(changed([](auto& c) { c.rows_per = RowsPer{2}; }).message(),
                HasSubstr("rows is 2, must be from 0 to 1"));
    // A received row may stand for top_k rows in a table of 32 bits.
    const auto per_rank = [](auto& c) { c.rows_per = RowsPer::rank, c.top_k = 8, c.capacity = (1LL << 28); };
    EXPECT_THAT(changed(per_rank).message(), HasSubstr("capacity is 268435456, must be from 0 to 268435455"));
}

TEST(CombineConfig, RowsPerRankTravelLikeThoseOfALayerWhoseExpertsAreTheRanks) {
    CombineConfig config;
    config.experts = 256;
    config.top_k = 8;
    config.hidden = 5;
    EXPECT_EQ(config.transport(3).experts, 256);
    config.rows_per = RowsPer::rank;
    for (const auto& [ranks, width] : {std::pair{1, 1}, {3, 3}, {8, 8}, {32, 8}}) {
        EXPECT_EQ(config.transport(ranks).experts, ranks);
        EXPECT_EQ(config.transport(ranks).top_k, width);
        EXPECT_EQ(config.transport(ranks).hidden, 5);
    }
}

TEST(CombineConfig, NarrowRowsHaveASizeOfTheirOwn) {
    CombineConfig config = sound();
    EXPECT_EQ(config.dispatched_row(), config.row_bytes());
    config.dispatch_type = NarrowType::e4m3;
    EXPECT_EQ(config.dispatched_row(), Bytes{7424});
    EXPECT_EQ(config.given_row(), config.row_bytes());
    config.narrow_input = true;
    EXPECT_EQ(config.given_row(), Bytes{7424});
    config.dispatch_type = NarrowType::none;
    EXPECT_THAT(config.validate().message(), HasSubstr("dispatch_input is 1 (quantized), but dispatch_type is 0"));
    EXPECT_THAT(changed([](auto& c) { c.dispatch_type = NarrowType{3}; }).message(), HasSubstr("dispatch_type is 3"));
    EXPECT_THAT(changed([](auto& c) { c.scale_block = -1; }).message(), HasSubstr("scale_block is -1"));
    EXPECT_TRUE(changed([](auto& c) { c.scale_block = 0x7FFFFFFF; }).ok());
}

TEST(CopyRoute, StreamsOnlyLongRowsThatDoNotStayInTheCache) {
    EXPECT_EQ(choose_route(Bytes{14336}, Bytes{1U << 24}), CopyRoute::streaming);
    EXPECT_EQ(choose_route(Bytes{14336}, Bytes{1U << 20}), CopyRoute::direct);
    EXPECT_EQ(choose_route(Bytes{14}, Bytes{1U << 24}), CopyRoute::direct);
}

}  // namespace

namespace {

TEST(ExpertPlacement, EveryExpertHasOneRankAndBlocksAreEqualWithinOne) {
    for (std::int32_t experts = 1; experts <= 40; ++experts) {
        for (std::int32_t ranks = 1; ranks <= 20; ++ranks) {
            const ExpertPlacement placement(experts, ranks);
            ASSERT_EQ(placement.first_expert(0), 0);
            ASSERT_EQ(placement.first_expert(ranks), experts);
            for (std::int32_t rank = 0; rank < ranks; ++rank) {
                const std::int32_t count = placement.local_experts(rank);
                ASSERT_EQ(placement.first_expert(rank) + count, placement.first_expert(rank + 1));
                ASSERT_TRUE(count == experts / ranks || count == experts / ranks + 1);
                for (std::int32_t i = 0; i < count; ++i) {
                    ASSERT_EQ(placement.rank_of(placement.first_expert(rank) + i), rank) << experts << ' ' << ranks;
                }
            }
        }
    }
}

}  // namespace

}  // namespace npushmem::moe
