// SPDX-License-Identifier: BSD-3-Clause
// Rejections and failures of the dispatch: they occur before any row moves, are the same on every rank, and leave no
// rank waiting; and recovery from a failure.
#include <gmock/gmock.h>

#include <vector>

#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A rejected call leaves the layer unchanged, and the next call may follow at once.
void expect_old_layer_and_next(LayerPe& pe, const Routing& routing) {
    EXPECT_EQ(pe.difference(routing, 1), "");
    pe.run_experts(routing, 1);
    ASSERT_TRUE(pe.combine()) << pe.error();
    EXPECT_EQ(pe.output_difference(routing), "");
    ASSERT_TRUE(pe.dispatch(routing, 2)) << pe.error();
    EXPECT_EQ(pe.difference(routing, 2), "");
}

void expect_whole_layers(LayerPe& pe, const Routing& routing) {
    for (std::uint64_t call = 0; call < 3; ++call) ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, call));
}

TEST(DispatchRefusals, ReportsTooManyRowsWithExpertRankAndValueOnAllRanks) {
    const CaseShape shape{3, 6, 2, 8, 33, 0.0};
    const Routing routing = random_routing(shape);
    CaseShape crowd = shape;
    crowd.first_used = crowd.last_used = 3;  // of rank 1
    const Routing crowded = random_routing(crowd);
    CombineConfig config = layer_config(shape, 20);
    config.capacity = 40;
    LayerFixture bench(shape.ranks, config);
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
        EXPECT_FALSE(pe.dispatch(crowded, 5));
        EXPECT_THAT(pe.error(),
                    AllOf(HasSubstr("expert 3, rank 2: with these 16 rows, rank 1 would hold 48 (48 in all)"),
                          HasSubstr("above its capacity of 40")));
        expect_old_layer_and_next(pe, routing);
    });
}

TEST(DispatchRefusals, ABadExpertOfOneRankIsRefusedByAll) {
    const CaseShape shape{3, 6, 2, 5, 34};
    const Routing routing = random_routing(shape);
    Routing wrong = routing;
    wrong.expert_ids[2][3] = 6;
    CaseShape more = shape;
    more.tokens = 6;
    const Routing too_many = random_routing(more);
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
        EXPECT_FALSE(pe.dispatch(wrong, 7));
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("rank 2"), HasSubstr("token 1, choice 1: expert 6 is outside 0..5")));
        EXPECT_FALSE(pe.dispatch(too_many, 7));
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("6 tokens"), HasSubstr("max_tokens 5")));
        expect_old_layer_and_next(pe, routing);
    });
}

TEST(DispatchRefusals, ReportsARankWithoutMemoryForItsTokens) {
    const CaseShape shape{3, 6, 2, 5, 35, 0.0};
    const Routing routing = random_routing(shape);
    LayerFixture bench(shape.ranks, layer_config(shape, 20), 4, /*window=*/false);
    bench.run([&](LayerPe& pe) {
        if (pe.pe() == 0) pe.fabric().unmap(2);
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
        EXPECT_FALSE(pe.pe() == 2 ? pe.dispatch_without_tokens_memory(routing) : pe.dispatch(routing, 9));
        EXPECT_THAT(pe.error(), HasSubstr("in is null but must hold 200 bytes"));
        EXPECT_EQ(pe.error().starts_with("rank 2 refused"), pe.pe() != 2) << pe.error();
        expect_old_layer_and_next(pe, routing);
    });
}

TEST(DispatchRefusals, ALayerWithoutCapacityHasNoDispatch) {
    const CaseShape shape{2, 4, 2, 5, 36};
    CombineConfig config = layer_config(shape, 20);
    config.capacity = 0;
    LayerFixture bench(shape.ranks, config);
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        EXPECT_FALSE(pe.dispatch(random_routing(shape), 1));
        EXPECT_THAT(pe.error(), HasSubstr("created with capacity 0"));
        EXPECT_EQ(pe.engine().x(), nullptr);
    });
}

TEST(DispatchRefusals, RanksThatDisagreeOnTheCapacity) {
    const CaseShape shape{2, 4, 2, 5, 37};
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        if (pe.pe() == 1) pe.config().capacity = 3;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), HasSubstr("disagree on capacity: rank 0 has 20, rank 1 has 3"));
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

TEST(DispatchRefusals, TablesOfTheCallersOwnNeedARoutingThatAllHaveSeen) {
    const CaseShape shape{2, 4, 2, 5, 38};
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(random_routing(shape), 1)) << pe.error();
        const CombinePlan plan = pe.plan();
        const Status status = pe.engine().combine().set_plan({plan.offset_table, plan.length_table, plan.slots});
        EXPECT_THAT(status.message(), HasSubstr("set the routing before a plan"));
    });
}

// The timeout names a rank that never calls; later calls are rejected with the reason; a reset restores the layer.
TEST(DispatchRefusals, ReportsARankThatNeverCallsAndRecoversByReset) {
    const CaseShape shape{2, 4, 2, 5, 41, 0.0};  // a third rank could be late as well
    const Routing routing = random_routing(shape);
    for (const bool mapped : {true, false}) {
        CombineConfig config = layer_config(shape, 20);
        config.timeout = std::chrono::milliseconds(50);
        LayerFixture bench(shape.ranks, config, 4, mapped);
        bench.run([&](LayerPe& pe) {
            if (!mapped) pe.fabric().unmap(1 - pe.pe());
            ASSERT_TRUE(pe.open()) << pe.error();
            if (pe.pe() == 0) {
                EXPECT_FALSE(pe.dispatch(routing, 1));
                EXPECT_THAT(pe.error(), AllOf(HasSubstr("dispatch, call 1: rank 0 waits for the counts of rank 1"),
                                              HasSubstr("of call 0")));
                EXPECT_FALSE(pe.dispatch(routing, 1));
                EXPECT_THAT(pe.error(), AllOf(HasSubstr("out of step"), HasSubstr("waits for the counts of rank 1")));
            }
            pe.barrier();
            if (pe.pe() == 1) {
                EXPECT_FALSE(pe.dispatch(routing, 1));
                EXPECT_THAT(pe.error(), AllOf(HasSubstr("rank 0 has aborted"), HasSubstr("waits for the counts of")));
            }
            ASSERT_TRUE(pe.reset()) << pe.error();
        });
    }
}

// After a rank fails in dispatch or combine, no rank waits for it in the other one. Only a reset of both restores the
// layer.
TEST(DispatchRefusals, AFailureInTheDispatchEndsTheCombineAndTheOtherWayRound) {
    const CaseShape shape{2, 4, 2, 5, 43, 0.0};
    const Routing routing = random_routing(shape);
    for (const bool mapped : {true, false}) {
        for (const bool dispatch_fails : {true, false}) {
            LayerFixture bench(shape.ranks, layer_config(shape, 20), 4, mapped);
            bench.run([&](LayerPe& pe) {
                if (!mapped) pe.fabric().unmap(1 - pe.pe());
                ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
                pe.run_experts(routing, 1);
                pe.barrier();
                if (pe.pe() == 0) {
                    if (dispatch_fails) pe.corrupt_counts_of(1);
                    EXPECT_FALSE(dispatch_fails ? pe.dispatch(routing, 2) : pe.combine_nothing());
                    EXPECT_THAT(pe.error(), HasSubstr(dispatch_fails ? "rank 1 is in call 1000" : "x is null"));
                }
                pe.barrier();
                if (pe.pe() == 1) {
                    EXPECT_FALSE(dispatch_fails ? pe.combine() : pe.dispatch(routing, 2));
                    EXPECT_THAT(pe.error(), AllOf(HasSubstr("rank 0 has aborted: "),
                                                  HasSubstr(dispatch_fails ? "rank 1 is in call 1000" : "x is null")));
                }
                EXPECT_FALSE(pe.combine());
                EXPECT_THAT(pe.error(), HasSubstr("out of step since an earlier failure"));
                EXPECT_FALSE(pe.dispatch(routing, 2));
                EXPECT_THAT(pe.error(), HasSubstr("out of step since an earlier failure"));
                ASSERT_TRUE(pe.reset()) << pe.error();
                expect_whole_layers(pe, routing);
            });
        }
    }
}

// Two ranks reject for different reasons: all ranks return the error of the lowest one.
TEST(DispatchRefusals, AllRanksReturnTheCodeOfTheLowestRankThatRefuses) {
    const CaseShape shape{3, 6, 2, 5, 44, 0.0};
    const Routing routing = random_routing(shape);
    Routing wrong = routing;
    wrong.expert_ids[1][3] = 6;
    LayerFixture bench(shape.ranks, layer_config(shape, 20));
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
        const RankRouting own = wrong.rank(static_cast<std::size_t>(pe.pe()));
        const std::vector<std::byte> in(1024);
        const Status status = pe.engine().dispatch(pe.pe() == 2 ? nullptr : in.data(), own);
        EXPECT_EQ(status.code(), Code::range);
        EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1"), HasSubstr("token 1, choice 1: expert 6 is outside")));
        expect_old_layer_and_next(pe, routing);
    });
}

// One rank rejects a combine, in every mode: all ranks fail, all reject a routing with the reason, and after a reset
// whole layers run again, with every slot counted.
TEST(DispatchRefusals, AfterAResetALayerWhoseCombineFailedRunsAgain) {
    const CaseShape shape{3, 6, 2, 5, 42, 0.0};
    const Routing routing = random_routing(shape);
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = layer_config(shape, 20);
        config.timeout = std::chrono::seconds(0);
        config.mode = mode;
        LayerFixture bench(shape.ranks, config);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
            std::vector<std::byte> out(1024);
            const std::byte* x = pe.pe() == 1 ? nullptr : pe.engine().x();
            const Status failed = pe.engine().combine_rows(x, out.data());
            EXPECT_EQ(failed.code(), Code::argument);
            EXPECT_THAT(failed.message(), HasSubstr("x is null but must hold"));
            EXPECT_EQ(failed.message().starts_with("rank 1 has aborted"), pe.pe() != 1) << failed.message();
            const Status refused = pe.engine().combine().set_routing(routing.rank(static_cast<std::size_t>(pe.pe())));
            EXPECT_THAT(refused.message(), HasSubstr("out of step since an earlier failure, until a reset"));
            ASSERT_TRUE(pe.reset()) << pe.error();
            EXPECT_THAT(pe.engine().combine().combine(x, out.data()).message(), HasSubstr("before any routing"));
            ASSERT_TRUE(pe.reset()) << pe.error();
            expect_whole_layers(pe, routing);
        });
    }
}

// Rank 3 is dead, and the ranks 1 and 2 have ended their calls because of that. The two cores of rank 0 wait for them
// first.
TEST(DispatchRefusals, TheDeathOfARankEndsTheWaitForAnother) {
    const CaseShape shape{4, 8, 2, 5, 36};
    const Routing routing = random_routing(shape);
    for (const bool fixed : {false, true}) {
        CombineConfig config = layer_config(shape, 20);
        if (fixed) config.capacity = fixed_slots;
        LayerFixture bench(shape.ranks, config, 1);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
            pe.barrier();
            if (pe.pe() != 0) return;
            pe.kill(3);
            EXPECT_FALSE(pe.dispatch(routing, 2));
            EXPECT_THAT(pe.error(), AllOf(ContainsRegex("of rank [12], "), HasSubstr("PE 3 has died")));
        });
    }
}

TEST(DispatchRefusals, TheDeathOfARankEndsTheCombineThatWaitsForAnother) {
    const CaseShape shape{4, 8, 2, 5, 36};
    const Routing routing = random_routing(shape);
    LayerFixture bench(shape.ranks, layer_config(shape, 20), 1);
    bench.run([&](LayerPe& pe) {
        ASSERT_TRUE(pe.open() && pe.dispatch(routing, 1)) << pe.error();
        pe.run_experts(routing, 1);
        pe.barrier();
        if (pe.pe() != 0) return;
        pe.kill(3);
        EXPECT_FALSE(pe.combine());
        EXPECT_THAT(pe.error(), AllOf(ContainsRegex("of rank [12], "), HasSubstr("PE 3 has died")));
    });
}

}  // namespace
}  // namespace npushmem::moe
