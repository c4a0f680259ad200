// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/connection.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace npushmem::verbs {
namespace {

using ::testing::ElementsAre;

WorkChain chain_of_writes(std::uint32_t count) {
    WorkChain out;
    for (; count > 0; --count) out.stamp();
    return out;
}

bool is_signaled(const ibv_send_wr& request) { return (request.send_flags & IBV_SEND_SIGNALED) != 0; }

TEST(SendQueue, OneCompletionRetiresAllRequestsUpToItsOwnAndNamesTheLast) {
    SendQueue queue(64);
    int operation = 0;
    WorkChain chain = chain_of_writes(3);
    queue.record(chain, {CompletionAction::Kind::context, &operation}, 5);
    EXPECT_EQ(queue.under_way(), 3U);
    EXPECT_EQ(queue.room(), 64U - 3U - 1U) << "one is reserved";
    EXPECT_FALSE(is_signaled(chain[1]));
    EXPECT_TRUE(is_signaled(chain[2]));
    const WorkRequestId last = WorkRequestId::of(chain[2].wr_id);
    EXPECT_EQ(last.kind, WorkRequestId::Kind::post);
    EXPECT_EQ(last.connection, 5U);
    std::vector<std::pair<void*, bool>> retired;
    queue.retire(last.which,
                 [&](const CompletionAction& posted, bool is_last) { retired.emplace_back(posted.what, is_last); });
    EXPECT_THAT(retired, ElementsAre(std::pair<void*, bool>(nullptr, false), std::pair<void*, bool>(nullptr, false),
                                     std::pair<void*, bool>(&operation, true)));
    EXPECT_EQ(queue.under_way(), 0U);
}

TEST(SendQueue, RejectedRequestsLeaveNoTrace) {
    SendQueue queue(64);
    WorkChain rejected = chain_of_writes(2);
    queue.record(rejected, {}, 0);
    queue.roll_back(2);
    EXPECT_EQ(queue.under_way(), 0U);
    EXPECT_FALSE(queue.burst_is_open());
    WorkChain next = chain_of_writes(1);
    queue.record(next, {}, 0);
    EXPECT_TRUE(is_signaled(next[0]));
    EXPECT_EQ(WorkRequestId::of(next[0].wr_id).which, 0U) << "the sequence number is free again";
}

TEST(SendQueue, ABurstIsOpenWhenItsLastRequestsAskForNoCompletion) {
    SendQueue queue(64);
    std::uint32_t last_signaled = 0;
    for (bool signaled = true; signaled;) {
        WorkChain chain = chain_of_writes(1);
        queue.record(chain, {}, 0);
        signaled = is_signaled(chain[0]);
        if (signaled) last_signaled = WorkRequestId::of(chain[0].wr_id).which;
        ASSERT_GT(queue.room(), 0U);
    }
    EXPECT_FALSE(queue.burst_is_open());
    queue.retire(last_signaled, [](const CompletionAction&, bool) {});
    EXPECT_EQ(queue.under_way(), 1U);
    EXPECT_TRUE(queue.burst_is_open());
}

}  // namespace
}  // namespace npushmem::verbs
