// SPDX-License-Identifier: BSD-3-Clause
// Each end of a ring alone, over scripted ports: its number of polls, and its errors when it cannot continue.
#include <gmock/gmock.h>

#include <deque>

#include "core/moe/common/rank_agreement.hpp"
#include "core/moe/ring/ring_ends.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const RingShape ring_shape{Bytes{128}, Bytes{64}, Bytes{64}};
constexpr RingRanks ranks{2, 5};

struct ScriptedPort {
    std::deque<std::uint64_t> seen;  // by one poll or wait after the other
    Status failure;                  // of the next wait
    std::chrono::nanoseconds time{0};
    std::vector<RingPiece> copies;
    std::vector<std::uint64_t> published;  // tails or heads

    std::uint64_t poll() {
        const std::uint64_t word = seen.front();
        if (seen.size() > 1) seen.pop_front();
        return word;
    }
    Result<std::uint64_t> wait() {
        time += std::chrono::milliseconds(1500);
        if (!failure.ok()) return failure;
        return poll();
    }
    std::uint64_t head() { return poll(); }
    std::uint64_t tail() { return poll(); }
    Result<std::uint64_t> await_head(std::uint64_t) { return wait(); }
    Result<std::uint64_t> await_tail(std::uint64_t) { return wait(); }
    void copy(const RingPiece& piece) { copies.push_back(piece); }
    void commit(std::uint64_t tail) { published.push_back(tail); }
    void release(std::uint64_t head) { published.push_back(head); }
    std::chrono::nanoseconds now() const { return time; }
};

struct SenderFixture {
    ScriptedPort port;
    RingSenderState state;
    RingSender<ScriptedPort> sender{port, ring_shape, ranks, state};

    Status send(std::uint64_t bytes) {
        if (Status s = sender.reserve(Bytes{bytes}); !s.ok()) return s;
        sender.write(Bytes{bytes});
        sender.commit();
        return {};
    }
};

TEST(RingSender, DoesNotPollWhileTheKnownHeadLeavesRoom) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok());
    bench.sender.prefetch_head(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.polls, 0U);
    EXPECT_EQ(bench.state.traffic.waits, 0U);
    EXPECT_THAT(bench.port.published, ElementsAre(64, 128));
    bench.port.seen = {128};
    ASSERT_TRUE(bench.send(64).ok());
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.polls, 1U) << "one poll for a whole ring's room";
}

TEST(RingSender, APrefetchedHeadAvoidsAPoll) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {64};
    bench.sender.prefetch_head(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.polls, 1U);
    bench.port.seen = {64, 128};
    bench.sender.prefetch_head(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok()) << "what was seen ahead was too old";
    EXPECT_EQ(bench.state.traffic.polls, 3U);
    EXPECT_EQ(bench.state.traffic.waits, 0U);
}

TEST(RingSender, SplitsAWriteAcrossTheEnd) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(32).ok());
    bench.port.seen = {96};
    bench.port.copies.clear();
    ASSERT_TRUE(bench.send(64).ok());
    ASSERT_EQ(bench.port.copies.size(), 2U);
    EXPECT_EQ(bench.port.copies[0].at, 96U);
    EXPECT_EQ(bench.port.copies[1].at, 0U);
    EXPECT_EQ(bench.port.copies[1].from, 32U);
    EXPECT_EQ(bench.state.traffic.splits, 1U);
}

TEST(RingSender, PublishesNothingBeforeTheCommitAndNothingTwice) {
    SenderFixture bench;
    ASSERT_TRUE(bench.sender.reserve(Bytes{64}).ok());
    bench.sender.write(Bytes{64});
    EXPECT_THAT(bench.port.published, IsEmpty());
    EXPECT_EQ(bench.state.tail, 0U);
    bench.sender.commit();
    bench.sender.commit();
    EXPECT_THAT(bench.port.published, ElementsAre(64));
}

TEST(RingSender, ADeadlineReportsRanksPositionsAndTime) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {0, 32};
    bench.port.failure = {Code::timeout, "no longer than 1.5 s"};
    const Status status = bench.send(64);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_EQ(status.message(),
              "rank 2 waits for room for 64 bytes in its ring at rank 5: head 32, tail 128, 96 of 128 bytes not yet "
              "taken, for 1.500 s: no longer than 1.5 s");
    bench.port.failure = {};
    bench.port.seen = {64};
    EXPECT_TRUE(bench.send(64).ok()) << "nothing is lost by a deadline";
}

TEST(RingSender, ReportsADeadPeer) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {0};
    bench.port.failure = {Code::peer_dead, "PE 5 is dead"};
    const Status status = bench.send(32);
    EXPECT_EQ(status.code(), Code::peer_dead);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("at rank 5"), HasSubstr("PE 5 is dead")));
}

TEST(RingSender, APeerThatAbortedEndsTheWait) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {abort_bit};
    const Status status = bench.send(32);
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_THAT(status.message(), HasSubstr("rank 5 has aborted"));
}

TEST(RingSender, UsesRoomThatWasReleasedBeforeAnAbort) {
    SenderFixture bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {abort_bit + 64};
    EXPECT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.send(32).code(), Code::aborted);
}

TEST(RingSender, RejectsAnImpossibleHead) {
    for (const std::uint64_t head : {160, 33, 4000}) {
        SenderFixture bench;
        ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
        bench.port.seen = {head};
        const Status status = bench.send(32);
        EXPECT_EQ(status.code(), Code::protocol);
        EXPECT_THAT(status.message(), HasSubstr("rank 5 wrote " + std::to_string(head) + " as its head"));
        EXPECT_THAT(status.message(), HasSubstr("multiples of 32 from 0 to 128"));
    }
}

TEST(RingSender, RefusesABatchThatIsTooLongOrNoWholeUnits) {
    SenderFixture bench;
    EXPECT_EQ(bench.sender.reserve(Bytes{96}).code(), Code::argument);
    EXPECT_THAT(bench.sender.reserve(Bytes{33}).message(), HasSubstr("33 bytes at once to rank 5"));
}

struct ReceiverFixture {
    ScriptedPort port;
    RingReceiverState state;
    RingReceiver<ScriptedPort> receiver{port, ring_shape, ranks, state};
};

TEST(RingReceiver, TakesWhatIsThereAndReleasesByTheStep) {
    ReceiverFixture bench;
    bench.port.seen = {96};
    EXPECT_EQ(bench.receiver.await(Bytes{1000}).value(), Bytes{96});
    bench.receiver.take(Bytes{32});
    EXPECT_THAT(bench.port.published, IsEmpty());
    EXPECT_EQ(bench.receiver.await(Bytes{32}).value(), Bytes{32}) << "no more than wanted";
    bench.receiver.take(Bytes{32});
    EXPECT_THAT(bench.port.published, ElementsAre(64));
    EXPECT_EQ(bench.state.traffic.polls, 1U);
    bench.receiver.take(Bytes{32});
    bench.receiver.publish_head();
    bench.receiver.publish_head();
    EXPECT_THAT(bench.port.published, ElementsAre(64, 96));
}

TEST(RingReceiver, ReleasesRoomBeforeItWaits) {
    ReceiverFixture bench;
    bench.port.seen = {32, 32, 64};
    bench.receiver.take(bench.receiver.await(Bytes{32}).value());
    EXPECT_THAT(bench.port.published, IsEmpty());
    EXPECT_EQ(bench.receiver.await(Bytes{32}).value(), Bytes{32});
    EXPECT_THAT(bench.port.published, ElementsAre(32));
    EXPECT_EQ(bench.state.traffic.waits, 1U);
}

TEST(RingReceiver, ADeadlineReportsRanksAndPositions) {
    ReceiverFixture bench;
    bench.port.seen = {0};
    bench.port.failure = {Code::timeout, "no longer than 1.5 s"};
    const Result<Bytes> there = bench.receiver.await(Bytes{32});
    EXPECT_EQ(there.status().code(), Code::timeout);
    EXPECT_EQ(there.status().message(),
              "rank 2 waits for data in its ring from rank 5: head 0, tail 0, for 1.500 s: no longer than 1.5 s");
}

TEST(RingReceiver, RejectsAnImpossibleTail) {
    for (const std::uint64_t tail : {160, 40}) {
        ReceiverFixture bench;
        bench.port.seen = {tail};
        const Status status = bench.receiver.await(Bytes{32}).status();
        EXPECT_EQ(status.code(), Code::protocol);
        EXPECT_THAT(status.message(), HasSubstr("rank 5 wrote " + std::to_string(tail) + " as its tail"));
    }
    ReceiverFixture bench;
    bench.port.seen = {abort_bit};
    EXPECT_EQ(bench.receiver.await(Bytes{32}).status().code(), Code::aborted);
}

TEST(RingReceiver, ReceivesDataThatPrecedesAnAbort) {
    ReceiverFixture bench;
    bench.port.seen = {abort_bit + 64};
    EXPECT_EQ(bench.receiver.await(Bytes{64}).value(), Bytes{64});
    bench.receiver.take(Bytes{64});
    EXPECT_EQ(bench.receiver.await(Bytes{32}).status().code(), Code::aborted);
}

}  // namespace
}  // namespace npushmem::moe
