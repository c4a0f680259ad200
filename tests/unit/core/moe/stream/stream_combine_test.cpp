// SPDX-License-Identifier: BSD-3-Clause
// The combine in mode stream, end to end in one process: one thread per PE, each with its own device.
#include <gmock/gmock.h>

#include <mutex>

#include "tests/unit/core/moe/combine_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CombineConfig stream_config(const CaseShape& shape, std::int64_t hidden, std::int64_t ring_rows = 0) {
    CombineConfig config = config_for(shape, hidden);
    config.mode = CombineMode::stream;
    config.ring_rows = ring_rows;
    return config;
}

TEST(StreamCombine, EveryRowLengthAndElementType) {
    for (const std::int64_t hidden : {1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168}) {
        for (const ElementType type : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            const CaseShape shape{3, 5, 2, 4, static_cast<std::uint32_t>(hidden)};
            CombineConfig config = stream_config(shape, hidden, 2);
            config.input = config.output = type;
            SCOPED_TRACE(fmt::format("hidden {} {}", hidden, name_of(type)));
            expect_exact(shape, config);
        }
    }
}

TEST(StreamCombine, EveryNumberOfRanksAndExpertsOnFewCoresAndMany) {
    for (const std::int32_t ranks : {1, 2, 3, 8}) {
        for (const std::int32_t experts_per_rank : {1, 2, 8}) {
            for (const int blocks : {1, 3, 20}) {
                const CaseShape shape{ranks, ranks * experts_per_rank, 3, 6, 11};
                SCOPED_TRACE(fmt::format("{} ranks, {} experts each, {} blocks", ranks, experts_per_rank, blocks));
                expect_exact(shape, stream_config(shape, 33, 2), 3, blocks);
            }
        }
    }
}

TEST(StreamCombine, ManyRanksAndManyExpertsOnEach) {
    for (const CombineMode mode : {CombineMode::chunked, CombineMode::stream}) {
        for (const CaseShape& shape : {CaseShape{17, 34, 2, 3, 12}, {3, 192, 3, 20, 13}}) {
            CombineConfig config = stream_config(shape, 9, 2);
            config.mode = mode;
            config.chunk_tokens = 2;
            SCOPED_TRACE(fmt::format("{} ranks, {}", shape.ranks, name_of(mode)));
            expect_exact(shape, config, 2, 2);
        }
    }
    const CaseShape most{64, 64, 2, 1, 12};
    expect_exact(most, stream_config(most, 9, 2), 1, 2);
}

TEST(StreamCombine, RingsOfOneRowAndOfNearlyAllAndFragmentsLongerThanTheRing) {
    for (const std::int64_t ring_rows : {1, 2, 3, 5, 0}) {
        const CaseShape shape{2, 4, 3, 40, 12};
        SCOPED_TRACE(fmt::format("{} rows", ring_rows));
        expect_exact(shape, stream_config(shape, 24, ring_rows));
    }
}

TEST(StreamCombine, EmptyExpertsEmptyRanksAndAbsentChoices) {
    for (const auto& [first, last, absent] : {std::tuple{2, -1, 0.1}, {0, 5, 0.1}, {0, -1, 1.0}, {0, -1, 0.5}}) {
        CaseShape shape{4, 8, 3, 6, 21};
        shape.first_used = first;
        shape.last_used = last;
        shape.absent = absent;
        shape.empty_rank = 1;
        expect_exact(shape, stream_config(shape, 40, 1));
    }
}

TEST(StreamCombine, ManyCallsWithTheRoutingChangedInBetween) {
    const CaseShape shape{3, 6, 2, 7, 31};
    CombineFixture bench(shape.ranks, stream_config(shape, 20, 3));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        for (std::uint32_t round = 0; round < 12; ++round) {
            CaseShape now = shape;
            now.seed += round;
            ASSERT_TRUE(pe.route(random_routing(now))) << pe.error();
            for (std::uint64_t call = 0; call < 10; ++call) {
                pe.fill(round * 100 + call);
                ASSERT_TRUE(pe.combine()) << pe.error();
                ASSERT_EQ(pe.first_difference(round * 100 + call), "");
            }
        }
    });
}

CombineConfig chunked_config(const CaseShape& shape, std::int64_t hidden, std::int64_t chunk,
                             std::int64_t ring_rows = 0) {
    CombineConfig config = stream_config(shape, hidden, ring_rows);
    config.mode = CombineMode::chunked;
    config.chunk_tokens = chunk;
    return config;
}

TEST(ChunkedCombine, EveryChunkAndRingOnFewCoresAndMany) {
    for (const std::int64_t chunk : {1, 2, 3, 7, 20, 1000}) {
        for (const std::int64_t ring_rows : {1, 3, 0}) {
            for (const int blocks : {1, 20}) {
                const CaseShape shape{3, 7, 3, 20, 51};
                SCOPED_TRACE(fmt::format("chunks of {}, rings of {} rows, {} blocks", chunk, ring_rows, blocks));
                expect_exact(shape, chunked_config(shape, 33, chunk, ring_rows), 3, blocks);
            }
        }
    }
}

TEST(ChunkedCombine, EveryNumberOfRanksAndRanksWithoutTokens) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        CaseShape shape{ranks, ranks * 2, 3, 9, 52, 0.3};
        shape.empty_rank = ranks > 1 ? 1 : -1;
        SCOPED_TRACE(fmt::format("{} ranks", ranks));
        expect_exact(shape, chunked_config(shape, 40, 4, 1));
    }
}

// One expert has all rows of a chunk, so they all come from one rank, through a ring of fewer rows.
TEST(ChunkedCombine, AChunkLongerThanTheRing) {
    CaseShape shape{2, 4, 2, 30, 53, 0.0};
    shape.first_used = shape.last_used = 3;
    expect_exact(shape, chunked_config(shape, 24, 10, 3));
}

TEST(ChunkedCombine, HoldsTheSlotsOfOneChunkOnly) {
    const CaseShape shape{2, 4, 2, 30, 54};
    CombineConfig config = chunked_config(shape, 24, 10);
    EXPECT_EQ(config.chunk_slots().value(), 20U);
    EXPECT_EQ(config.chunks(), 3U);
    EXPECT_EQ(ring_shape(config, 2).size, ring_step(config.row_bytes()) * 60);  // all rows fit into the usual ring
    config.hidden = 7168;
    EXPECT_EQ(ring_shape(config, 2).size, ring_step(config.row_bytes()) * 21);  // two chunks, spread over two ranks
    config.mode = CombineMode::stream;
    EXPECT_EQ(config.chunk_slots(), config.slots());
}

TEST(ChunkedCombine, RanksThatDisagreeOnTheChunk) {
    const CaseShape shape{2, 4, 2, 5, 43};
    CombineFixture bench(shape.ranks, chunked_config(shape, 20, 4));
    bench.run([&](CombinePe& pe) {
        if (pe.pe() == 1) pe.config().chunk_tokens = 3;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), HasSubstr("disagree on chunk_tokens: rank 0 has 4, rank 1 has 3"));
    });
}

// The rings at the senders: a few of each of the cases above.
TEST(PullingCombine, EveryRowLengthRingAndModeOnFewCoresAndMany) {
    for (const CombineMode mode : {CombineMode::stream, CombineMode::chunked}) {
        for (const std::int64_t hidden : {1, 17, 128, 7168}) {
            for (const std::int64_t ring_rows : {1, 3, 0}) {
                const CaseShape shape{3, 7, 3, 12, static_cast<std::uint32_t>(60 + hidden)};
                CombineConfig config = chunked_config(shape, hidden, 5, ring_rows);
                config.mode = mode;
                config.ring_place = RingPlace::sender;
                SCOPED_TRACE(fmt::format("hidden {}, {} rows, {}", hidden, ring_rows, name_of(mode)));
                expect_exact(shape, config, 3, ring_rows == 1 ? 1 : 20);
            }
        }
    }
}

TEST(PullingCombine, EveryNumberOfRanksAndRanksWithoutTokens) {
    for (const std::int32_t ranks : {1, 2, 8}) {
        CaseShape shape{ranks, ranks * 2, 3, 9, 55, 0.3};
        shape.empty_rank = ranks > 1 ? 1 : -1;
        CombineConfig config = stream_config(shape, 40, 2);
        config.ring_place = RingPlace::sender;
        SCOPED_TRACE(fmt::format("{} ranks", ranks));
        expect_exact(shape, config);
    }
}

TEST(PullingCombine, RanksThatDisagreeOnWhereTheRingsAre) {
    const CaseShape shape{2, 4, 2, 5, 56};
    CombineFixture bench(shape.ranks, stream_config(shape, 20, 4));
    bench.run([&](CombinePe& pe) {
        if (pe.pe() == 1) pe.config().ring_place = RingPlace::sender;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), HasSubstr("disagree on the ring's place: rank 0 has 0, rank 1 has 1"));
    });
}

// The additions follow the order of the choices, in any order of arrival.
TEST(StreamCombine, GivesTheBitsOfModeDirect) {
    const CaseShape shape{3, 6, 4, 9, 44};
    const Routing routing = random_routing(shape);
    std::vector<std::vector<std::byte>> out[3];
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = stream_config(shape, 100, 2);
        config.mode = mode;
        config.chunk_tokens = 4;
        std::mutex mutex;
        auto& of_mode = out[static_cast<std::size_t>(mode)];
        of_mode.resize(3);
        CombineFixture bench(shape.ranks, config);
        bench.run([&](CombinePe& pe) {
            pe.use_random_payload();
            ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
            pe.fill(5);
            ASSERT_TRUE(pe.combine()) << pe.error();
            const std::lock_guard lock(mutex);
            of_mode[static_cast<std::size_t>(pe.pe())] = pe.out();
        });
    }
    EXPECT_EQ(out[0], out[1]);
    EXPECT_EQ(out[0], out[2]);
}

TEST(StreamCombine, ReportsARankThatNeverCallsAtTheDeadline) {
    const CaseShape shape{2, 4, 2, 5, 41, 0.0};  // a third rank could be late as well
    const Routing routing = random_routing(shape);
    CombineConfig config = stream_config(shape, 20, 1);
    config.timeout = std::chrono::milliseconds(50);
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        if (pe.pe() != 1) {
            EXPECT_FALSE(pe.combine());
            EXPECT_THAT(pe.error(), AllOf(HasSubstr("combine, call 1: rank 0 waits"), HasSubstr("rank 1: head")));
            EXPECT_FALSE(pe.combine());
            EXPECT_THAT(pe.error(), HasSubstr("out of step since an earlier failure"));
        }
        pe.barrier();
    });
}

// A rank whose call is rejected signals this to the others, which wait without a timeout.
TEST(StreamCombine, ARefusedCallEndsThoseOfTheOthers) {
    const CaseShape shape{3, 6, 2, 5, 42, 0.0};
    const Routing routing = random_routing(shape);
    CombineConfig config = stream_config(shape, 20, 1);
    config.timeout = std::chrono::seconds(0);
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        if (pe.pe() == 1) {
            EXPECT_EQ(pe.engine().combine(nullptr, pe.out_data()).code(), Code::argument);
        } else {
            EXPECT_FALSE(pe.combine());
            EXPECT_THAT(pe.error(), HasSubstr("rank 1 has aborted: moe: x is null"));
        }
        pe.barrier();
    });
}

// Ranks 0 and 2 cannot map each other; rank 1 maps both.
void expect_served_by_the_host(RingPlace place) {
    for (const auto& [mode, hidden, ring_rows] : {std::tuple{CombineMode::stream, 20, 1},
                                                  {CombineMode::stream, 128, 0},
                                                  {CombineMode::stream, 7, 3},
                                                  {CombineMode::chunked, 20, 2},
                                                  {CombineMode::chunked, 16, 0}}) {
        const CaseShape shape{3, 6, 2, 13, 46, 0.1};
        CombineConfig config = chunked_config(shape, hidden, 4, ring_rows);
        config.mode = mode;
        config.ring_place = place;
        CombineFixture bench(shape.ranks, config, 4, /*window=*/false);
        bench.run([&](CombinePe& pe) {
            if (pe.pe() != 1) pe.fabric().unmap(2 - pe.pe());
            ASSERT_TRUE(pe.open()) << pe.error();
            for (std::uint32_t round = 0; round < 3; ++round) {
                CaseShape now = shape;
                now.seed += round;
                ASSERT_TRUE(pe.route(random_routing(now))) << pe.error();
                for (std::uint64_t call = 0; call < 3; ++call) {
                    pe.fill(round * 100 + call);
                    ASSERT_TRUE(pe.combine()) << pe.error();
                    ASSERT_EQ(pe.first_difference(round * 100 + call), "");
                }
            }
            EXPECT_EQ(pe.memory().puts() > 0, pe.pe() != 1 && place == RingPlace::receiver);
        });
    }
}

TEST(StreamCombine, RanksThatAreNotMappedAreServedByTheHost) { expect_served_by_the_host(RingPlace::receiver); }
TEST(PullingCombine, RanksThatAreNotMappedAreServedByTheHost) { expect_served_by_the_host(RingPlace::sender); }

// A fabric that does not map a rank's own memory: its rows to itself also go through the host.
TEST(StreamCombine, ARankThatDoesNotMapItselfIsServedByTheHost) {
    for (const RingPlace place : {RingPlace::receiver, RingPlace::sender}) {
        for (const CombineMode mode : {CombineMode::stream, CombineMode::chunked}) {
            const CaseShape shape{1, 3, 2, 13, 47, 0.1};
            CombineConfig config = chunked_config(shape, 20, 4, 2);
            config.mode = mode;
            config.ring_place = place;
            CombineFixture bench(shape.ranks, config, 4, /*window=*/false);
            bench.run([&](CombinePe& pe) {
                pe.fabric().unmap(0);
                ASSERT_TRUE(pe.open() && pe.route(random_routing(shape))) << pe.error();
                for (std::uint64_t call = 0; call < 3; ++call) {
                    pe.fill(call);
                    ASSERT_TRUE(pe.combine()) << pe.error();
                    ASSERT_EQ(pe.first_difference(call), "") << name_of(mode);
                }
            });
        }
    }
}

TEST(StreamCombine, ReportsAnUnmappedRankThatNeverCallsAtTheDeadline) {
    const CaseShape shape{2, 4, 2, 5, 48, 0.0};
    const Routing routing = random_routing(shape);
    CombineConfig config = stream_config(shape, 20, 1);
    config.timeout = std::chrono::milliseconds(50);
    CombineFixture bench(shape.ranks, config, 4, /*window=*/false);
    bench.run([&](CombinePe& pe) {
        pe.fabric().unmap(1 - pe.pe());
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        if (pe.pe() == 0) {
            EXPECT_FALSE(pe.combine());
            EXPECT_THAT(pe.error(), AllOf(HasSubstr("combine, call 1: rank 0 waits"), HasSubstr("rank 1: head")));
        }
        pe.barrier();
    });
}

TEST(StreamCombine, RanksThatDisagreeOnTheRing) {
    const CaseShape shape{2, 4, 2, 5, 43};
    CombineFixture bench(shape.ranks, stream_config(shape, 20, 4));
    bench.run([&](CombinePe& pe) {
        if (pe.pe() == 1) pe.config().ring_rows = 3;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), HasSubstr("disagree on ring_rows: rank 0 has 4, rank 1 has 3"));
    });
}

}  // namespace
}  // namespace npushmem::moe
