// Each end of a ring alone, over ports that do as they are told: how often they look, and what they say when it does
// not go on.
#include <gmock/gmock.h>

#include <deque>

#include "core/moe/gave_up.hpp"
#include "core/moe/ring/ring_receiver.hpp"
#include "core/moe/ring/ring_sender.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const RingShape ring_shape{Bytes{128}, Bytes{64}, Bytes{64}};
constexpr RingRanks ranks{2, 5};

struct ToldPort {
    std::deque<std::uint64_t> seen;  // by one look or wait after the other
    Status failure;                  // of the next wait
    std::chrono::nanoseconds time{0};
    std::vector<RingPiece> copies;
    std::vector<std::uint64_t> told;  // tails or heads

    std::uint64_t look() {
        const std::uint64_t word = seen.front();
        if (seen.size() > 1) seen.pop_front();
        return word;
    }
    Result<std::uint64_t> wait() {
        time += std::chrono::milliseconds(1500);
        if (!failure.ok()) return failure;
        return look();
    }
    std::uint64_t head() { return look(); }
    std::uint64_t tail() { return look(); }
    Result<std::uint64_t> await_head(std::uint64_t) { return wait(); }
    Result<std::uint64_t> await_tail(std::uint64_t) { return wait(); }
    void copy(const RingPiece& piece) { copies.push_back(piece); }
    void commit(std::uint64_t tail) { told.push_back(tail); }
    void release(std::uint64_t head) { told.push_back(head); }
    std::chrono::nanoseconds now() const { return time; }
};

struct SenderBench {
    ToldPort port;
    RingSenderState state;
    RingSender<ToldPort> sender{port, ring_shape, ranks, state};

    Status send(std::uint64_t bytes) {
        if (Status s = sender.reserve(Bytes{bytes}); !s.ok()) return s;
        sender.write(Bytes{bytes});
        sender.commit();
        return {};
    }
};

TEST(RingSender, DoesNotLookWhileWhatItKnowsLeavesRoom) {
    SenderBench bench;
    ASSERT_TRUE(bench.send(64).ok());
    bench.sender.look_ahead(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.looks, 0U);
    EXPECT_EQ(bench.state.traffic.waits, 0U);
    EXPECT_THAT(bench.port.told, ElementsAre(64, 128));
    bench.port.seen = {128};
    ASSERT_TRUE(bench.send(64).ok());
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.looks, 1U) << "one look for a whole ring's room";
}

TEST(RingSender, AHeadSeenAheadSparesTheLook) {
    SenderBench bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {64};
    bench.sender.look_ahead(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.state.traffic.looks, 1U);
    bench.port.seen = {64, 128};
    bench.sender.look_ahead(Bytes{64});
    ASSERT_TRUE(bench.send(64).ok()) << "what was seen ahead was too old";
    EXPECT_EQ(bench.state.traffic.looks, 3U);
    EXPECT_EQ(bench.state.traffic.waits, 0U);
}

TEST(RingSender, SplitsAWriteAcrossTheEnd) {
    SenderBench bench;
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

TEST(RingSender, TellsNothingBeforeTheCommitAndNothingTwice) {
    SenderBench bench;
    ASSERT_TRUE(bench.sender.reserve(Bytes{64}).ok());
    bench.sender.write(Bytes{64});
    EXPECT_THAT(bench.port.told, IsEmpty());
    EXPECT_EQ(bench.state.tail, 0U);
    bench.sender.commit();
    bench.sender.commit();
    EXPECT_THAT(bench.port.told, ElementsAre(64));
}

TEST(RingSender, ADeadlineSaysWhoWhereHowMuchAndHowLong) {
    SenderBench bench;
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

TEST(RingSender, ADeadPeerIsNamed) {
    SenderBench bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {0};
    bench.port.failure = {Code::peer_dead, "PE 5 is dead"};
    const Status status = bench.send(32);
    EXPECT_EQ(status.code(), Code::peer_dead);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("at rank 5"), HasSubstr("PE 5 is dead")));
}

TEST(RingSender, APeerThatGaveUpEndsTheWait) {
    SenderBench bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {gave_up};
    const Status status = bench.send(32);
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_THAT(status.message(), HasSubstr("rank 5 has given up"));
}

TEST(RingSender, WhatAPeerTookBeforeItGaveUpCounts) {
    SenderBench bench;
    ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
    bench.port.seen = {gave_up + 64};
    EXPECT_TRUE(bench.send(64).ok());
    EXPECT_EQ(bench.send(32).code(), Code::aborted);
}

TEST(RingSender, RefusesAHeadThatNobodyCanHaveWritten) {
    for (const std::uint64_t head : {160, 33, 4000}) {
        SenderBench bench;
        ASSERT_TRUE(bench.send(64).ok() && bench.send(64).ok());
        bench.port.seen = {head};
        const Status status = bench.send(32);
        EXPECT_EQ(status.code(), Code::protocol);
        EXPECT_THAT(status.message(), HasSubstr("rank 5 wrote " + std::to_string(head) + " as its head"));
        EXPECT_THAT(status.message(), HasSubstr("multiples of 32 from 0 to 128"));
    }
}

TEST(RingSender, RefusesABatchThatIsTooLongOrNoWholeUnits) {
    SenderBench bench;
    EXPECT_EQ(bench.sender.reserve(Bytes{96}).code(), Code::argument);
    EXPECT_THAT(bench.sender.reserve(Bytes{33}).message(), HasSubstr("33 bytes at once to rank 5"));
}

struct ReceiverBench {
    ToldPort port;
    RingReceiverState state;
    RingReceiver<ToldPort> receiver{port, ring_shape, ranks, state};
};

TEST(RingReceiver, TakesWhatIsThereAndTellsByTheStep) {
    ReceiverBench bench;
    bench.port.seen = {96};
    EXPECT_EQ(bench.receiver.await(Bytes{1000}).value(), Bytes{96});
    bench.receiver.take(Bytes{32});
    EXPECT_THAT(bench.port.told, IsEmpty());
    EXPECT_EQ(bench.receiver.await(Bytes{32}).value(), Bytes{32}) << "no more than wanted";
    bench.receiver.take(Bytes{32});
    EXPECT_THAT(bench.port.told, ElementsAre(64));
    EXPECT_EQ(bench.state.traffic.looks, 1U);
    bench.receiver.take(Bytes{32});
    bench.receiver.publish();
    bench.receiver.publish();
    EXPECT_THAT(bench.port.told, ElementsAre(64, 96));
}

TEST(RingReceiver, TellsOfRoomBeforeItWaits) {
    ReceiverBench bench;
    bench.port.seen = {32, 32, 64};
    bench.receiver.take(bench.receiver.await(Bytes{32}).value());
    EXPECT_THAT(bench.port.told, IsEmpty());
    EXPECT_EQ(bench.receiver.await(Bytes{32}).value(), Bytes{32});
    EXPECT_THAT(bench.port.told, ElementsAre(32));
    EXPECT_EQ(bench.state.traffic.waits, 1U);
}

TEST(RingReceiver, ADeadlineSaysWhoAndWhere) {
    ReceiverBench bench;
    bench.port.seen = {0};
    bench.port.failure = {Code::timeout, "no longer than 1.5 s"};
    const Result<Bytes> there = bench.receiver.await(Bytes{32});
    EXPECT_EQ(there.status().code(), Code::timeout);
    EXPECT_EQ(there.status().message(),
              "rank 2 waits for data in its ring from rank 5: head 0, tail 0, for 1.500 s: no longer than 1.5 s");
}

TEST(RingReceiver, RefusesATailThatNobodyCanHaveWritten) {
    for (const std::uint64_t tail : {160, 40}) {
        ReceiverBench bench;
        bench.port.seen = {tail};
        const Status status = bench.receiver.await(Bytes{32}).status();
        EXPECT_EQ(status.code(), Code::protocol);
        EXPECT_THAT(status.message(), HasSubstr("rank 5 wrote " + std::to_string(tail) + " as its tail"));
    }
    ReceiverBench bench;
    bench.port.seen = {gave_up};
    EXPECT_EQ(bench.receiver.await(Bytes{32}).status().code(), Code::aborted);
}

TEST(RingReceiver, WhatAPeerSentBeforeItGaveUpCounts) {
    ReceiverBench bench;
    bench.port.seen = {gave_up + 64};
    EXPECT_EQ(bench.receiver.await(Bytes{64}).value(), Bytes{64});
    bench.receiver.take(Bytes{64});
    EXPECT_EQ(bench.receiver.await(Bytes{32}).status().code(), Code::aborted);
}

}  // namespace
}  // namespace npushmem::moe
