// SPDX-License-Identifier: BSD-3-Clause
// Rejections and failures of the combine: they occur before any byte moves, are the same on every rank, and leave no
// rank waiting.
#include <gmock/gmock.h>

#include <vector>

#include "core/moe/combine.hpp"
#include "tests/unit/core/moe/combine_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CombineRefusals, ABadTableOfOneRankIsRefusedByAllBeforeAByteMoves) {
    const CaseShape shape{3, 6, 2, 5, 33, 0.0};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        const CombinePlan plan = pe.engine().plan();
        std::vector<std::int32_t> offsets = plan.offset_table;
        if (pe.pe() == 1) offsets[0] = 1 << 30;
        const Status status = pe.engine().set_plan({offsets, plan.length_table, plan.slots});
        EXPECT_THAT(status.message(), AllOf(HasSubstr("1073741824"), HasSubstr("rank")));
        EXPECT_EQ(status.message().starts_with("rank 1 refused"), pe.pe() != 1) << status.message();
        pe.fill(4);
        ASSERT_TRUE(pe.combine()) << pe.error();
        EXPECT_EQ(pe.first_difference(4), "");
    });
}

TEST(CombineRefusals, RefusalsOfRoutingReachEveryRankAndLeaveTheOldOne) {
    const CaseShape shape{3, 6, 2, 5, 34};
    const Routing routing = random_routing(shape);
    Routing wrong = routing;
    wrong.expert_ids[2][3] = 6;
    CaseShape more = shape;
    more.tokens = 6;
    const Routing too_many = random_routing(more);
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        EXPECT_FALSE(pe.route(wrong));
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("rank 2"), HasSubstr("expert 6")));
        EXPECT_FALSE(pe.route(too_many));
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("6 tokens"), HasSubstr("max_tokens 5")));
        pe.adopt(routing);
        pe.fill(4);
        ASSERT_TRUE(pe.combine()) << pe.error();
        EXPECT_EQ(pe.first_difference(4), "");
    });
}

TEST(CombineRefusals, CreationFailsWithoutLeaksIfRanksDisagree) {
    const CaseShape shape{3, 6, 2, 5, 35};
    CombineFixture bench(shape.ranks, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        if (pe.pe() == 1) pe.config().top_k = 3;
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("top_k"), HasSubstr("rank 0 has 2"), HasSubstr("rank 1 has 3")));
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

TEST(CombineRefusals, ReportsWhichBuffersDoNotFitTheHeap) {
    const CaseShape shape{2, 6, 2, 5, 37};
    CombineConfig config = config_for(shape, 1 << 20);
    CombineFixture bench(shape.ranks, config, 4, true, /*heap=*/1 << 20);
    bench.run([&](CombinePe& pe) {
        EXPECT_FALSE(pe.open());
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("two buffers of slots"), HasSubstr("bytes left")));
        EXPECT_EQ(pe.memory().live(), 0);
    });
}

// A rank whose call is rejected does not leave the others waiting until their timeout.
TEST(CombineRefusals, ARefusedCallOfOneRankEndsTheCallsOfAll) {
    const CaseShape shape{3, 6, 2, 5, 38, 0.0};
    const Routing routing = random_routing(shape);
    CombineConfig config = config_for(shape, 20);
    config.timeout = std::chrono::seconds(0);
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        const Status status = pe.pe() == 1 ? pe.engine().combine(nullptr, pe.out_data())
                                           : pe.engine().combine(pe.x_data(), pe.out_data());
        EXPECT_EQ(status.code(), Code::argument);
        EXPECT_THAT(status.message(), HasSubstr("x is null"));
        EXPECT_EQ(status.message().starts_with("rank 1 has aborted"), pe.pe() != 1) << status.message();
        EXPECT_FALSE(pe.combine());
        EXPECT_THAT(pe.error(), HasSubstr("out of step"));
    });
}

// The results of four ranks when ranks 1 and 2 reject the same call.
std::vector<Status> results_of_two_refusals(const CombineConfig& config, const Routing& routing) {
    std::vector<Status> results(4);
    CombineFixture bench(4, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        Status& result = results[static_cast<std::size_t>(pe.pe())];
        result = pe.engine().combine(pe.pe() == 1 ? nullptr : pe.x_data(),  //
                                     pe.pe() == 2 ? nullptr : pe.out_data());
        EXPECT_FALSE(pe.combine());
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("out of step"), HasSubstr(result.message())));
    });
    return results;
}

// A combine starts without an agreement. All ranks report the reason of the rank that failed first.
TEST(CombineRefusals, AllRanksReportOneReasonIfTwoRefuseAtOnce) {
    const CaseShape shape{4, 8, 2, 5, 42, 0.0};
    const Routing routing = random_routing(shape);
    for (const CombineMode mode : {CombineMode::direct, CombineMode::chunked, CombineMode::stream}) {
        CombineConfig config = config_for(shape, 20);
        config.mode = mode;
        config.timeout = std::chrono::seconds(0);
        const std::vector<Status> results = results_of_two_refusals(config, routing);
        const std::size_t first = results[1].message().starts_with("moe: x is null") ? 1 : 2;
        const std::string& reason = results[first].message();
        EXPECT_THAT(reason, AllOf(HasSubstr("is null but must hold"), Not(HasSubstr("has aborted")))) << name_of(mode);
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            EXPECT_EQ(results[rank].code(), Code::argument) << results[rank].message();
            if (rank == first) continue;
            const std::string expected = fmt::format("rank {} has aborted: {}", first, reason);
            const bool refuses = rank == 1 || rank == 2;
            EXPECT_THAT(results[rank].message(), StartsWith(expected)) << name_of(mode);
            EXPECT_EQ(results[rank].message() == expected, !refuses) << results[rank].message();
        }
    }
}

TEST(CombineRefusals, OverlappingBuffersAreRefused) {
    const CaseShape shape{1, 2, 2, 5, 39, 0.0};
    const Routing routing = random_routing(shape);
    CombineFixture bench(1, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        const Status status = pe.engine().combine(pe.x_data(), pe.x_data() + 100);
        EXPECT_THAT(status.message(), HasSubstr("x (400 bytes at"));
        EXPECT_THAT(status.message(), HasSubstr("overlaps out (200 bytes"));
    });
}

TEST(CombineRefusals, CombineBeforeRoutingIsRefused) {
    const CaseShape shape{1, 2, 2, 5, 40};
    CombineFixture bench(1, config_for(shape, 20));
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open());
        EXPECT_THAT(pe.engine().combine(nullptr, nullptr).message(), HasSubstr("before any routing"));
    });
}

// If a rank never calls, the others time out, and the message names the missing rank and its last call.
TEST(CombineRefusals, ReportsARankThatNeverCallsAtTheDeadline) {
    const CaseShape shape{2, 4, 2, 5, 41};  // a third rank could be late as well
    const Routing routing = random_routing(shape);
    CombineConfig config = config_for(shape, 20);
    config.timeout = std::chrono::milliseconds(50);
    CombineFixture bench(shape.ranks, config);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.fill(1);
        if (pe.pe() == 1) {
            pe.barrier();
            return;
        }
        EXPECT_FALSE(pe.combine());
        EXPECT_THAT(pe.error(), AllOf(HasSubstr("waits for the rows of rank 1"), HasSubstr("last finished call is 0")));
        pe.barrier();
    });
}

}  // namespace
}  // namespace npushmem::moe
