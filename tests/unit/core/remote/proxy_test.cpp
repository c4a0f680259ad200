// SPDX-License-Identifier: BSD-3-Clause
// Tests of the proxy: its thread sleeps, is woken and cancels operations in flight; its worker executes requests.

#include <gmock/gmock.h>

#include "core/remote/proxy.hpp"
#include "tests/fakes/fake_slices.hpp"
#include "tests/unit/core/remote/remote_access_fixture.hpp"
#include "tests/unit/core/remote/requests.hpp"

namespace npushmem::proxy {

// The worker's tests use a fabric in memory where data must arrive, and MockTransport where the calls and their times
// are the contract.

namespace {

using fakes::FakeFabric;
using ::testing::_;
using ::testing::AnyNumber;
using ::testing::DoAll;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::Return;
using ::testing::SetArgPointee;
using Kind = Request::Kind;

struct FakeWorker : ::testing::Test {
    std::uint64_t& word(int pe, std::size_t offset) { return *array.at<std::uint64_t>(pe, offset); }
    void advance_all() {
        while (worker.advance()) {
        }
    }

    fakes::SymmetricArray array{3, 1024};
    fakes::FakeSlices slices{array, FakeFabric::Delivery::deferred};
    Worker worker{*slices.peers};
    std::shared_ptr<RequesterState> requester = std::make_shared<RequesterState>();
};

TEST_F(FakeWorker, CarriedSourcesMayChange) {
    std::uint64_t source = 7;
    Request put = put_of(requester, 1, 16, &source, 8);
    put.copy_inline(&source);
    worker.accept(std::move(put));
    source = 8;
    advance_all();
    EXPECT_TRUE(worker.busy());
    EXPECT_EQ(requester->finished(), 0U);
    slices.fabric.deliver_all();
    advance_all();
    EXPECT_EQ(word(1, 16), 7U);
    EXPECT_EQ(requester->finished(), 1U);
    EXPECT_FALSE(worker.busy());
}

TEST_F(FakeWorker, AnswersWhenTheRequestIsComplete) {
    word(2, 24) = 40;
    std::uint64_t got = 0;
    worker.accept(atomic_of(requester, 2, NPUSHMEM_ATOMIC_FETCH_ADD, 24, 2, 1));
    advance_all();
    EXPECT_FALSE(requester->answered(1));
    slices.fabric.deliver_all();
    advance_all();
    ASSERT_TRUE(requester->answered(1));
    EXPECT_TRUE(requester->answer().ok());
    EXPECT_EQ(requester->value(), 40U);
    worker.accept(get_of(requester, 2, 24, &got, 8, 2));
    advance_all();
    slices.fabric.deliver_all();
    advance_all();
    ASSERT_TRUE(requester->answered(2));
    EXPECT_EQ(got, 42U);
}

TEST_F(FakeWorker, RetriesAPostWithoutRoom) {
    slices.fabric.reject_posts(3);
    std::uint64_t source = 5;
    worker.accept(put_of(requester, 1, 0, &source, 8, 1));
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(worker.advance());
    EXPECT_TRUE(worker.advance());
    slices.fabric.deliver_all();
    advance_all();
    EXPECT_TRUE(requester->answered(1));
    EXPECT_EQ(word(1, 0), 5U);
}

TEST_F(FakeWorker, QuietWaitsForEarlierRequestsToAllPes) {
    std::uint64_t source = 5;
    const auto other = std::make_shared<RequesterState>();
    worker.accept(put_of(other, 1, 0, &source, 8));
    worker.accept(put_of(other, 2, 0, &source, 8));
    worker.accept(request_of(Kind::quiet, requester, 1));
    advance_all();
    slices.fabric.deliver_one();
    advance_all();
    EXPECT_FALSE(requester->answered(1));
    slices.fabric.deliver_one();
    advance_all();
    EXPECT_TRUE(requester->answered(1));
    EXPECT_TRUE(requester->answer().ok());
    worker.accept(request_of(Kind::quiet, requester, 2));
    EXPECT_TRUE(requester->answered(2)) << "nothing was asked since";
}

// Other requesters that never stop must not keep a quiet from completing.
TEST_F(FakeWorker, QuietCompletesDuringAStreamOfRequests) {
    std::uint64_t source = 5;
    const auto other = std::make_shared<RequesterState>();
    worker.accept(put_of(other, 1, 0, &source, 8));
    worker.accept(put_of(other, 1, 0, &source, 8));
    worker.accept(request_of(Kind::quiet, requester, 1));
    constexpr int endless = 1000;
    int rounds = 0;
    for (; rounds < endless && !requester->answered(1); ++rounds) {
        worker.accept(put_of(other, 1, 0, &source, 8));
        (void)worker.advance();
        slices.fabric.deliver_one();  // and one or more remain under way, as long as all are posted
    }
    EXPECT_LT(rounds, endless);
}

TEST_F(FakeWorker, ReportsToTheRequesterOnly) {
    std::uint64_t source = 5;
    const auto other = std::make_shared<RequesterState>();
    const auto waiting = std::make_shared<RequesterState>();
    worker.accept(put_of(requester, 1, 2000, &source, 8));   // beyond that PE's memory
    worker.accept(put_of(waiting, 1, 2000, &source, 8, 1));  // the same, and waited for
    worker.accept(put_of(other, 1, 0, &source, 8, 1));
    advance_all();
    slices.fabric.deliver_all();
    advance_all();
    const Status failed = requester->take_failure();
    EXPECT_EQ(failed.code(), Code::range);
    EXPECT_THAT(failed.message(), HasSubstr("transport fake: a put to PE 1 failed"));
    EXPECT_TRUE(requester->take_failure().ok()) << "it is reported once";
    ASSERT_TRUE(waiting->answered(1));
    EXPECT_EQ(waiting->answer().code(), Code::range);
    EXPECT_TRUE(waiting->take_failure().ok());
    ASSERT_TRUE(other->answered(1));
    EXPECT_TRUE(other->answer().ok());
    EXPECT_TRUE(other->take_failure().ok());
    EXPECT_EQ(requester->finished(), 1U);
}

TEST_F(FakeWorker, AbortFailsAllWaitingRequests) {
    std::uint64_t source = 5;
    const auto second = std::make_shared<RequesterState>();
    const auto third = std::make_shared<RequesterState>();
    worker.accept(put_of(requester, 1, 0, &source, 8, 1));
    (void)worker.advance();
    slices.fabric.reject_posts(1);
    worker.accept(put_of(second, 1, 0, &source, 8, 1));  // not posted
    (void)worker.advance();
    worker.accept(request_of(Kind::quiet, third, 1));
    worker.abort({Code::aborted, "over"});
    for (const auto& each : {requester, second, third}) {
        ASSERT_TRUE(each->answered(1));
        EXPECT_EQ(each->answer().code(), Code::aborted);
    }
    EXPECT_FALSE(worker.busy());
}

// Queues are numbered 1, 2, ... in the order in which PEs are first used.
class MockWorker : public RemoteAccessFixture {
protected:
    MockWorker() : RemoteAccessFixture(3) {}

    void start(std::uint64_t capabilities = everything, std::uint32_t atomics = all_atomics) {
        build_map({capabilities, atomics, atomics, "mock"});
        EXPECT_CALL(transport, connect(_)).Times(AnyNumber()).WillRepeatedly(Return(Status{}));
        EXPECT_CALL(transport, import_memory(_, _)).Times(AnyNumber()).WillRepeatedly([](int pe, auto) {
            return static_cast<std::uint64_t>(100 + pe);
        });
        EXPECT_CALL(transport, create_queue()).Times(AnyNumber()).WillRepeatedly([this] { return ++made_; });
        EXPECT_CALL(transport, destroy_queue(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, release_memory(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        worker.emplace(*peers);
    }
    void TearDown() override {
        worker.reset();
        peers.reset();
    }

    std::optional<Worker> worker;
    std::shared_ptr<RequesterState> requester = std::make_shared<RequesterState>();
    std::uint64_t value = 5;

private:
    std::uint64_t made_ = 0;
};

TEST_F(MockWorker, APeWithoutRoomDoesNotDelayOthers) {
    start();
    const auto other = std::make_shared<RequesterState>();
    EXPECT_CALL(transport, put(1, Field(&npushmem_rma::remote, 101), _)).WillRepeatedly(Return(Code::again));
    EXPECT_CALL(transport, put(2, Field(&npushmem_rma::remote, 102), _)).WillOnce(Return(Code::ok));
    worker->accept(put_of(requester, 1, 0, &value, 8, 1));
    worker->accept(put_of(other, 2, 0, &value, 8, 1));
    (void)worker->advance();
    (void)worker->advance();
    EXPECT_TRUE(other->answered(1));
    EXPECT_FALSE(requester->answered(1));
    EXPECT_TRUE(worker->busy());
}

TEST_F(MockWorker, ALongRequestDoesNotDelayShortOnes) {
    start();
    const auto other = std::make_shared<RequesterState>();
    EXPECT_CALL(transport, get(1, _, NotNull()))
        .WillOnce(DoAll(SetArgPointee<2>(71), Return(Code::ok)))
        .WillOnce(DoAll(SetArgPointee<2>(72), Return(Code::ok)));
    EXPECT_CALL(transport, test(1, 71)).WillRepeatedly(Return(Code::again));
    EXPECT_CALL(transport, test(1, 72)).WillOnce(Return(Code::ok));
    worker->accept(get_of(requester, 1, 0, &value, 8, 1));
    worker->accept(get_of(other, 1, 0, &value, 8, 1));
    (void)worker->advance();
    EXPECT_TRUE(other->answered(1));
    EXPECT_FALSE(requester->answered(1));
}

// With more tokens than one call polls, each gets its turn.
TEST_F(MockWorker, PollsAllOfManyRequestsInFlight) {
    start();
    constexpr int many = 30;
    std::uint64_t token = 0;
    EXPECT_CALL(transport, put(1, _, NotNull()))
        .Times(many)
        .WillRepeatedly([&](std::uint64_t, const npushmem_rma&, std::uint64_t* out) {
            *out = ++token;
            return Code::ok;
        });
    EXPECT_CALL(transport, test(1, _)).WillRepeatedly([](std::uint64_t, std::uint64_t polled) {
        return polled == many ? Code::ok : Code::again;
    });
    for (int i = 0; i < many; ++i) worker->accept(put_of(requester, 1, 0, &value, 8));
    for (int round = 0; round < many && requester->finished() == 0; ++round) (void)worker->advance();
    EXPECT_EQ(requester->finished(), 1U);
}

TEST_F(MockWorker, SignalsAndUpdatesFollowPutsButFetchesNeedNot) {
    start();
    InSequence order;
    EXPECT_CALL(transport, put(1, _, _)).Times(2).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(1, Field(&npushmem_put_signal::signal_remote, 101), _))
        .WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(1, Field(&npushmem_atomic::operation, NPUSHMEM_ATOMIC_FETCH), NotNull()))
        .WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(1, Field(&npushmem_atomic::result, IsNull()), IsNull())).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, get(1, _, _)).WillOnce(Return(Code::ok));
    worker->accept(put_of(requester, 1, 0, &value, 8));
    worker->accept(put_of(requester, 1, 0, &value, 8));
    worker->accept(put_signal_of(requester, 1, 0, &value, 8, 16, 1));
    worker->accept(atomic_of(requester, 1, NPUSHMEM_ATOMIC_FETCH, 0, 0, 1));
    worker->accept(atomic_of(requester, 1, NPUSHMEM_ATOMIC_ADD, 0, 1));
    worker->accept(request_of(Kind::fence, requester));
    worker->accept(request_of(Kind::fence, requester));  // as good as the other one
    worker->accept(get_of(requester, 1, 0, &value, 8, 2));
    (void)worker->advance();
    (void)worker->advance();
    EXPECT_TRUE(requester->answered(2));
}

TEST_F(MockWorker, WithoutPutSignalTheDataIsFencedBeforeTheSignal) {
    start(everything & ~NPUSHMEM_CAP_PUT_SIGNAL);
    InSequence order;
    EXPECT_CALL(transport, put(1, _, NotNull())).WillOnce(DoAll(SetArgPointee<2>(9), Return(Code::ok)));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(1, Field(&npushmem_atomic::operand, 3), IsNull()))
        .WillOnce(Return(Code::again))
        .WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, test(1, 9)).WillOnce(Return(Code::ok));
    worker->accept(put_signal_of(requester, 1, 0, &value, 8, 16, 3));
    (void)worker->advance();
    EXPECT_EQ(requester->finished(), 0U);
    (void)worker->advance();
    EXPECT_EQ(requester->finished(), 1U);
}

// A quiet would take the failures of tokens that have not been polled.
TEST_F(MockWorker, PollsQuietWhenNoTokenIsLeft) {
    start();
    InSequence order;
    EXPECT_CALL(transport, put(1, _, _)).WillOnce(DoAll(SetArgPointee<2>(9), Return(Code::ok)));
    EXPECT_CALL(transport, test(1, 9)).WillOnce(Return(Code::again)).WillOnce(Return(Code::peer_dead));
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::again)).WillOnce(Return(Code::timeout));
    const auto other = std::make_shared<RequesterState>();
    worker->accept(put_of(requester, 1, 0, &value, 8, 1));
    worker->accept(request_of(Kind::quiet, other, 1));
    for (int i = 0; i < 3; ++i) (void)worker->advance();
    ASSERT_TRUE(requester->answered(1));
    EXPECT_EQ(requester->answer().code(), Code::peer_dead);
    ASSERT_TRUE(other->answered(1));
    const Status answer = other->answer();
    EXPECT_EQ(answer.code(), Code::timeout);
    EXPECT_THAT(answer.message(), HasSubstr("transport mock: quiet to PE 1 failed"));
}

// An accepted update may still fail, and no token reports it.
TEST_F(MockWorker, ALateFailureIsReportedToAllPossibleRequesters) {
    start();
    const auto other = std::make_shared<RequesterState>();
    EXPECT_CALL(transport, put(1, _, _)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::range)).WillRepeatedly(Return(Code::ok));
    worker->accept(put_of(requester, 1, 0, &value, 8));
    while (worker->advance()) {
    }
    EXPECT_TRUE(requester->take_failure().ok());
    worker->accept(request_of(Kind::quiet, other, 1));
    while (worker->advance()) {
    }
    ASSERT_TRUE(other->answered(1));
    EXPECT_EQ(other->answer().code(), Code::range);
    EXPECT_TRUE(other->take_failure().ok()) << "reported twice";
    EXPECT_EQ(requester->take_failure().code(), Code::range);
}

TEST_F(MockWorker, RejectsImpossibleRequests) {
    start(everything, 1U << NPUSHMEM_ATOMIC_FETCH);
    worker->accept(atomic_of(requester, 1, NPUSHMEM_ATOMIC_SWAP, 0, 0, 1));
    ASSERT_TRUE(requester->answered(1));
    EXPECT_EQ(requester->answer().code(), Code::unsupported);
    EXPECT_CALL(transport, connect(Field(&npushmem_peer::pe, 2)))
        .WillOnce(Return(Status{Code::unreachable, "no cable"}));
    worker->accept(put_of(requester, 2, 0, &value, 8));
    EXPECT_THAT(requester->take_failure().message(), HasSubstr("cannot connect to PE 2: no cable"));
    EXPECT_EQ(requester->finished(), 2U);
    EXPECT_FALSE(worker->busy());
}

}  // namespace

namespace {

using ::testing::_;
using ::testing::AnyNumber;
using ::testing::DoAll;
using ::testing::Return;
using ::testing::SetArgPointee;

class ProxyThread : public RemoteAccessFixture {
protected:
    ProxyThread() : RemoteAccessFixture(2) {}

    void SetUp() override {
        build_map({everything, all_atomics, all_atomics, "mock"});
        EXPECT_CALL(transport, connect(_)).Times(AnyNumber()).WillRepeatedly(Return(Status{}));
        EXPECT_CALL(transport, import_memory(_, _)).Times(AnyNumber()).WillRepeatedly(Return(std::uint64_t{101}));
        EXPECT_CALL(transport, create_queue()).Times(AnyNumber()).WillRepeatedly(Return(std::uint64_t{1}));
        EXPECT_CALL(transport, destroy_queue(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, release_memory(_)).Times(AnyNumber()).WillRepeatedly(Return(Code::ok));
        auto started = Proxy::start(*peers, WaitBudget{}, real_os);
        ASSERT_TRUE(started.ok()) << started.status().message();
        proxy = std::move(started).value();
    }
    void TearDown() override {
        proxy.reset();
        peers.reset();
    }
    void push(Request request) {
        while (!proxy->try_push(request)) std::this_thread::yield();
    }
    void await_answer(std::uint64_t number) const {
        while (!requester->answered(number)) std::this_thread::yield();
    }

    SystemWaitOs real_os;
    std::unique_ptr<Proxy> proxy;
    std::shared_ptr<RequesterState> requester = std::make_shared<RequesterState>();
    std::uint64_t value = 5;
};

// It sleeps for seconds, so a missing wake-up would fail the test.
TEST_F(ProxyThread, SleepsWhenIdleAndIsWokenByEachRequest) {
    EXPECT_CALL(transport, put(1, _, _)).WillRepeatedly(Return(Code::ok));
    for (std::uint64_t number = 1; number <= 50; ++number) {
        const std::uint64_t slept = proxy->sleeps();
        push(put_of(requester, 1, 0, &value, 8, number));
        await_answer(number);
        EXPECT_TRUE(requester->answer().ok());
        if (number % 2 == 0) continue;  // while it looks for more, or falls asleep
        while (proxy->sleeps() == slept) std::this_thread::yield();
    }
}

TEST_F(ProxyThread, FailsWaitingRequestsWhenItEnds) {
    EXPECT_CALL(transport, put(1, _, _)).WillRepeatedly(DoAll(SetArgPointee<2>(9), Return(Code::ok)));
    std::atomic<int> looks{0};
    EXPECT_CALL(transport, test(1, 9)).WillRepeatedly([&](std::uint64_t, std::uint64_t) {
        looks.fetch_add(1, std::memory_order_relaxed);
        return Code::again;
    });
    push(put_of(requester, 1, 0, &value, 8, 1));
    while (looks.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    const auto other = std::make_shared<RequesterState>();
    push(put_of(other, 1, 0, &value, 8, 1));
    proxy.reset();
    ASSERT_TRUE(requester->answered(1));
    EXPECT_EQ(requester->answer().code(), Code::aborted);
    ASSERT_TRUE(other->answered(1));
    EXPECT_EQ(other->answer().code(), Code::aborted);
}

}  // namespace

}  // namespace npushmem::proxy
