// SPDX-License-Identifier: BSD-3-Clause
// Contexts over the same peers: when each opens, uses, waits for and closes queues. Against MockTransport, because the
// contract includes the calls that must not happen.
#include "core/remote/remote_context.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "tests/unit/core/remote/remote_access_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::Not;
using ::testing::Return;
using ::testing::StrictMock;
using Completion = RemoteAccess::Completion;

// PE 0 of three. Queues are numbered 1, 2, ... in order of creation.
class ContextQueues : public RemoteAccessFixture {
protected:
    ContextQueues() : RemoteAccessFixture(3) {}

    void SetUp() override {
        build_map({everything, all_atomics, all_atomics, "mock"});
        first.emplace(*peers);
        second.emplace(*peers);
    }
    void TearDown() override {
        ON_CALL(transport, destroy_queue(_)).WillByDefault(Return(Code::ok));
        EXPECT_CALL(transport, destroy_queue(_)).Times(open_);
        EXPECT_CALL(transport, release_memory(_)).Times(::testing::AnyNumber()).WillRepeatedly(Return(Code::ok));
        first.reset();
        second.reset();
        peers.reset();
    }

    void expect_connection(int pe) {
        EXPECT_CALL(transport, connect(Field(&npushmem_peer::pe, pe))).WillOnce(Return(Status{}));
        EXPECT_CALL(transport, import_memory(pe, _)).WillOnce(Return(static_cast<std::uint64_t>(100 + pe)));
    }
    // Puts that complete later, each over its own new queue.
    void post(RemoteAccess& context, int pe) {
        const auto queue = static_cast<std::uint64_t>(++made_);
        ++open_;
        EXPECT_CALL(transport, create_queue()).WillOnce(Return(queue));
        EXPECT_CALL(transport, put(queue, Field(&npushmem_rma::pe, pe), _)).WillOnce(Return(Code::ok));
        EXPECT_TRUE(context.put(pe, 0, &value, sizeof value, Completion::deferred).ok());
    }
    void expect_quiet(std::uint64_t queue) { EXPECT_CALL(transport, quiet(queue)).WillOnce(Return(Code::ok)); }

    std::optional<RemoteAccess> first;
    std::optional<RemoteAccess> second;
    long value = 5;
    int made_ = 0;
    int open_ = 0;
};

TEST_F(ContextQueues, OpenAtFirstUseOfAPeerAndCloseWithTheirContext) {
    {
        InSequence order;
        expect_connection(1);  // once, for both
        EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{1}));
        EXPECT_CALL(transport, put(1, Field(&npushmem_rma::remote, 101), _)).Times(2).WillRepeatedly(Return(Code::ok));
        EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{2}));
        EXPECT_CALL(transport, get(2, Field(&npushmem_rma::remote, 101), _)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, destroy_queue(1)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, atomic(2, _, _)).WillOnce(Return(Code::ok));
    }
    EXPECT_TRUE(first->put(1, 0, &value, 8, Completion::deferred).ok());
    EXPECT_TRUE(first->put(1, 0, &value, 8, Completion::deferred).ok());
    EXPECT_TRUE(second->get(1, 0, &value, 8, Completion::deferred).ok());
    first.reset();
    npushmem_atomic op{};
    op.pe = 1;
    op.operation = NPUSHMEM_ATOMIC_ADD;
    op.width = 8;
    EXPECT_TRUE(second->atomic(op, Completion::deferred).ok());
    open_ = 1;
}

TEST_F(ContextQueues, ADeadPeIsForgottenOnce) {
    EXPECT_CALL(transport, poll_event(_)).WillRepeatedly(Return(Code::again));
    expect_connection(1);
    post(*first, 1);
    EXPECT_CALL(transport, forget(1)).WillOnce(Return(Code::ok));
    peers->forget(1);
    peers->forget(1);
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok());
}

// In a job that continues without its dead. PE 1 never completes; PE 2 does after PE 1 was found dead.
class QuietAmongTheDead : public ContextQueues {
protected:
    Status quiet_without_pe_1() {
        peers->survive_deaths();
        expect_connection(1);
        expect_connection(2);
        post(*first, 1);
        post(*first, 2);
        liveness.dead = 1;
        EXPECT_CALL(transport, quiet(1)).WillRepeatedly(Return(Code::again));
        EXPECT_CALL(transport, quiet(2)).WillRepeatedly([this] {
            return liveness.checked == std::vector{2} ? Code::ok : Code::again;
        });
        return first->quiet();
    }
};

TEST_F(QuietAmongTheDead, CompletesTheLiving) {
    const Status done = quiet_without_pe_1();
    EXPECT_EQ(done.code(), Code::peer_dead);
    EXPECT_THAT(done.message(), HasSubstr("PE 1 has died"));
    EXPECT_EQ(liveness.checked, std::vector{2}) << "waited for PE 2 alone";
}

TEST_F(QuietAmongTheDead, SucceedsIfTheProgramKnowsOfTheDeath) {
    peers->on_failure([](int pe) { return pe == 1; });
    const Status done = quiet_without_pe_1();
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_EQ(liveness.checked, std::vector{2});
}

// It may have written to this PE, whose transport holds its connection.
TEST_F(ContextQueues, ADeadPeThatNoContextHasUsedIsForgotten) {
    EXPECT_CALL(transport, forget(2)).WillOnce(Return(Code::ok));
    peers->forget(2);
    peers->forget(2);
    ::testing::Mock::VerifyAndClearExpectations(&transport);
    EXPECT_CALL(transport, poll_event(_)).WillRepeatedly(Return(Code::again));
    expect_connection(2);
    post(*first, 2);
    EXPECT_CALL(transport, forget(2)).WillOnce(Return(Code::ok));
    peers->forget(2);
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok()) << "the new connection was forgotten too";
}

TEST_F(ContextQueues, AFailedForgetIsRepeated) {
    EXPECT_CALL(transport, forget(1)).WillOnce(Return(Code::system)).WillOnce(Return(Code::ok));
    for (int i = 0; i < 3; ++i) peers->forget(1);
}

TEST_F(ContextQueues, AnUnusedContextOpensNoQueue) {
    EXPECT_TRUE(first->quiet().ok());
    EXPECT_TRUE(first->fence().ok());
    EXPECT_TRUE(first->quiet(std::array{1, 2}).ok());
}

TEST_F(ContextQueues, QuietWaitsForQueuesOfItsContextOnly) {
    expect_connection(1);
    post(*first, 1);
    post(*second, 1);
    expect_quiet(2);
    EXPECT_TRUE(second->quiet().ok());
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok());
}

TEST_F(ContextQueues, FenceOrdersThoseOfItsContextOnly) {
    expect_connection(1);
    post(*first, 1);
    post(*second, 1);
    EXPECT_CALL(transport, fence(2)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(second->fence().ok());
}

TEST_F(ContextQueues, QuietOfSomePesWaitsForTheirQueuesOnly) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    post(*second, 2);
    expect_quiet(2);
    EXPECT_TRUE(first->quiet(std::array{0, 2}).ok());
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok()) << "the other PE's is left";
}

TEST_F(ContextQueues, ACompleteQueueIsNotPolledAgain) {
    expect_connection(1);
    post(*first, 1);
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok());
    EXPECT_TRUE(first->quiet().ok());
    EXPECT_TRUE(first->fence().ok());
    EXPECT_CALL(transport, put(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(first->put(1, 0, &value, 8, Completion::local).ok());
    expect_quiet(1);
    EXPECT_TRUE(first->quiet().ok()) << "a put whose source is free again may still be under way";
}

// The slowest PE determines the total time.
TEST_F(ContextQueues, QuietWaitsForAllPesAtTheSameTime) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    InSequence order;
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::again));
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::again));
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::again));
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(first->quiet().ok());
}

TEST_F(ContextQueues, AFailureReportsItsPeWhileTheOthersComplete) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::peer_dead)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    const Status failed = first->quiet();
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_THAT(failed.message(), HasSubstr("transport mock: quiet to PE 1 failed"));
    EXPECT_TRUE(first->quiet().ok()) << "what failed is asked again, what is complete is not";
}

TEST_F(ContextQueues, ATimedOutQuietReportsTheMissingPes) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    expect_quiet(1);
    EXPECT_CALL(transport, quiet(2)).WillRepeatedly(Return(Code::again));
    const Status failed = first->quiet();
    EXPECT_EQ(failed.code(), Code::timeout);
    EXPECT_THAT(failed.message(), AllOf(HasSubstr("quiet"), HasSubstr("not complete: PE 2"), Not(HasSubstr("PE 1"))));
}

TEST_F(ContextQueues, AQuietOfSeveralPesFailsWhenOneDies) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    EXPECT_CALL(transport, quiet(_)).WillRepeatedly(Return(Code::again));
    liveness.dead = 2;
    const Status failed = first->quiet();
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_THAT(failed.message(), HasSubstr("from PEs 1, 2: PE 2 has died or finalized"));
    EXPECT_THAT(liveness.checked, ::testing::ElementsAre(1, 2));
}

TEST_F(ContextQueues, AQuietNeedsOnlyThePesThatAreNotComplete) {
    expect_connection(1);
    expect_connection(2);
    post(*first, 1);
    post(*first, 2);
    liveness.dead = 1;
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(2)).WillRepeatedly([this](std::uint64_t) {
        return liveness.checked.empty() ? Code::again : Code::ok;
    });
    const Status done = first->quiet();
    EXPECT_TRUE(done.ok()) << done.message();
    EXPECT_THAT(liveness.checked, ::testing::ElementsAre(2));
}

TEST_F(ContextQueues, AFailedCreationReportsThePeAndIsRetried) {
    expect_connection(2);
    EXPECT_CALL(transport, create_queue()).WillOnce(Return(Status{Code::memory, "no more queues"}));
    const Status refused = first->put(2, 0, &value, 8, Completion::deferred);
    EXPECT_EQ(refused.code(), Code::memory);
    EXPECT_EQ(refused.message(), "transport mock: cannot create a queue for PE 2: no more queues");
    post(*first, 2);
}

// A thread inside the transport, with one context's queue, does not block threads of other contexts.
TEST_F(ContextQueues, OfDifferentContextsAreUsedAtTheSameTime) {
    expect_connection(1);
    post(*first, 1);
    post(*second, 1);
    EXPECT_CALL(transport, get(2, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put(1, _, _)).WillOnce([this](std::uint64_t, const npushmem_rma&, std::uint64_t*) {
        long other = 0;
        std::thread thread([&] { EXPECT_TRUE(second->get(1, 0, &other, sizeof other, Completion::local).ok()); });
        thread.join();
        return Code::ok;
    });
    EXPECT_TRUE(first->put(1, 0, &value, 8, Completion::deferred).ok());
}

// Closing a queue may take as long as a wait for a silent peer.
TEST_F(ContextQueues, AreOpenedWhileAnotherQueueIsClosing) {
    expect_connection(1);
    post(*first, 1);
    expect_connection(2);
    EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{2}));
    EXPECT_CALL(transport, get(2, Field(&npushmem_rma::pe, 2), _)).WillOnce(Return(Code::ok));
    std::future<Status> got;
    EXPECT_CALL(transport, destroy_queue(1)).WillOnce([&](std::uint64_t) {
        got =
            std::async(std::launch::async, [&] { return second->get(2, 0, &value, sizeof value, Completion::local); });
        EXPECT_EQ(got.wait_for(std::chrono::seconds(20)), std::future_status::ready);
        return Code::ok;
    });
    first.reset();
    EXPECT_TRUE(got.get().ok());
    open_ = 1;
}

// One context that waits: for room, for its tokens, and for progress.

TEST_F(RemoteAccessTest, BackPressureIsRepeatedUntilThereIsRoom) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, put(_, _, _))
        .WillOnce(Return(Code::again))
        .WillOnce(Return(Code::again))
        .WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->put(1, 0, &value, sizeof value, Completion::deferred).ok());
    end();
}

TEST_F(RemoteAccessTest, ABlockingCallWaitsForItsToken) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, get(_, _, ::testing::NotNull()))
        .WillOnce([](std::uint64_t, const npushmem_rma&, std::uint64_t* token) {
            *token = 3;
            return Code::ok;
        });
    EXPECT_CALL(transport, test(9, 3)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->get(1, 0, &value, sizeof value, Completion::local).ok());
    end();
}

TEST_F(RemoteAccessTest, ADeferredCallUsesNoToken) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, get(_, _, ::testing::IsNull())).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->get(1, 0, &value, sizeof value, Completion::deferred).ok());
    EXPECT_TRUE(access->quiet().ok());
    end();
}

TEST_F(RemoteAccessTest, AsynchronousErrorsAreDeliveredByQuiet) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, put(_, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    ASSERT_TRUE(access->put(1, 0, &value, 8, Completion::deferred).ok());
    EXPECT_CALL(transport, poll_event(_)).WillOnce([](npushmem_event& event) {
        event.code = NPUSHMEM_E_PEER_DEAD;
        (void)std::string("PE 1 is gone").copy(event.message, sizeof event.message);
        return Code::ok;
    });
    const Status failed = access->quiet();
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_THAT(failed.message(), HasSubstr("PE 1 is gone"));
    end();
}

TEST_F(RemoteAccessTest, AFullTransportTimesOut) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, put(_, _, _)).WillRepeatedly(Return(Code::again));
    const Status failed = access->put(1, 0, &value, 8, Completion::local);
    EXPECT_EQ(failed.code(), Code::timeout);
    EXPECT_THAT(failed.message(), HasSubstr("a put"));
    end();
}

// Does what another thread would do meanwhile, inside the wait: the lock must be free.
TEST_F(RemoteAccessTest, OtherThreadsProceedWhileOneWaits) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    bool room = false;
    EXPECT_CALL(transport, put(_, _, _)).WillRepeatedly([&](std::uint64_t, const npushmem_rma&, std::uint64_t*) {
        return room ? Code::ok : Code::again;
    });
    EXPECT_CALL(transport, get(_, _, _)).WillRepeatedly([&](std::uint64_t, const npushmem_rma&, std::uint64_t*) {
        room = true;
        return Code::ok;
    });
    long other = 0;
    os.on_yield = os.on_sleep = [&] {
        std::thread thread([&] { EXPECT_TRUE(access->get(1, 0, &other, sizeof other, Completion::local).ok()); });
        thread.join();
    };
    EXPECT_TRUE(access->put(1, 0, &value, sizeof value, Completion::local).ok());
    end();
}

// A peer of one transport may need progress of our other transport before it makes room.
TEST_F(RemoteAccessTest, AWaitDrivesEveryTransportInUse) {
    StrictMock<MockTransport> near;
    ON_CALL(near, reach(_)).WillByDefault([](const npushmem_peer& peer) {
        return peer.pe == 0 ? Reach{everything, all_atomics, all_atomics, "near"} : Reach{0, 0, 0, "far"};
    });
    EXPECT_CALL(near, reach(_)).Times(2);
    named.insert(named.begin(), {"near", &near});
    ON_CALL(transport, reach(_)).WillByDefault(Return(Reach{everything, all_atomics, all_atomics, "mock"}));
    EXPECT_CALL(transport, reach(_));
    auto built = TransportMap::build(named, layout, 0, peer_of);
    ASSERT_TRUE(built.ok()) << built.status().message();
    map.emplace(std::move(built).value());
    peers.emplace(named, *map, PeerDirectory{peer_of, [this](int, int) { return std::span<const std::byte>(handle); }},
                  waiter, Duration{1'000'000'000});
    access.emplace(*peers);
    expect_meeting();
    expect_parting();
    bool room = false;
    EXPECT_CALL(near, progress()).WillRepeatedly([&] {
        room = true;
        return Code::ok;
    });
    EXPECT_CALL(transport, progress()).WillRepeatedly(Return(Code::again));
    EXPECT_CALL(transport, put(_, _, _)).WillRepeatedly([&](std::uint64_t, const npushmem_rma&, std::uint64_t*) {
        return room ? Code::ok : Code::again;
    });
    EXPECT_TRUE(access->put(1, 0, &value, sizeof value, Completion::deferred).ok());
    end();
}

// A quiet would take the failure from the caller that polls the token.
TEST_F(RemoteAccessTest, DoesNotPollQuietWhileACallerPollsItsToken) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    int quiets = 0;
    EXPECT_CALL(transport, get(_, _, ::testing::NotNull()))
        .WillOnce(::testing::DoAll(::testing::SetArgPointee<2>(5), Return(Code::ok)));
    EXPECT_CALL(transport, test(9, 5)).WillOnce(Return(Code::again)).WillOnce(Return(Code::range));
    EXPECT_CALL(transport, quiet(9)).WillRepeatedly([&] {
        ++quiets;
        return Code::ok;
    });
    const RemoteAccess::WaitFunction impatient = [](const std::function<bool()>& ready, const WaitFor&) {
        return ready() ? Status{} : Status{Code::timeout, "at once"};
    };
    const RemoteAccess::WaitFunction waits = [&](const std::function<bool()>& ready, const WaitFor&) {
        while (!ready()) EXPECT_EQ(access->quiet(&impatient).code(), Code::timeout);
        return Status{};
    };
    EXPECT_EQ(access->get(1, 0, &value, sizeof value, Completion::local, &waits).code(), Code::range);
    EXPECT_EQ(quiets, 0);
    EXPECT_TRUE(access->quiet().ok());
    EXPECT_EQ(quiets, 1);
    end();
}

TEST_F(RemoteAccessTest, RetriesAKnownPeWithoutRoom) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, progress()).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, put(9, _, _))
        .WillOnce(Return(Code::ok))
        .WillOnce(Return(Code::again))
        .WillOnce(Return(Code::ok))
        .WillOnce(Return(Code::range));
    const auto put = [&] { return access->put(1, 0, &value, sizeof value, Completion::deferred).code(); };
    EXPECT_EQ(put(), Code::ok);
    EXPECT_EQ(put(), Code::ok);
    EXPECT_EQ(put(), Code::range);
    end();
}

}  // namespace
}  // namespace npushmem
