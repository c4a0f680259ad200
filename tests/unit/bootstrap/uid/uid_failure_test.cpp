// SPDX-License-Identifier: BSD-3-Clause
// What every rank learns when one of them, or somebody else, does the wrong thing.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>

#include "bootstrap/rendezvous/connector.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/rendezvous_service.hpp"
#include "tests/unit/bootstrap/rendezvous/raw_client.hpp"
#include "tests/unit/bootstrap/uid/thread_job.hpp"

namespace npushmem::uid {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

MATCHER_P2(FailedWith, code, text, "") {
    *result_listener << name_of(arg.code()) << ": " << arg.message();
    return arg.code() == code && arg.message().find(text) != std::string::npos;
}

// A channel to the service that has greeted but not joined.
Channel greeted(const ThreadJob& job) {
    const UniqueId id = job.id();
    Connector connector(id.service, id.credentials, 0, "the service");
    for (;;) {
        const auto there = connector.step();
        EXPECT_TRUE(there.ok()) << there.status().message();
        if (!there.ok() || there.value()) return connector.take();
        pollfd waiting = connector.interest();
        ::poll(&waiting, 1, connector.next_timeout().poll_milliseconds());
    }
}

class UidFailureSizes : public ExchangeTest {};
INSTANTIATE_TEST_SUITE_P(Sizes, UidFailureSizes, all_exchanges({2, 3, 5, 8, 17, 64}), exchange_name);

TEST_P(UidFailureSizes, AbortReachesEveryRankWithItsReason) {
    const ThreadJob job(exchange(ranks_in_job()));
    const int culprit = ranks_in_job() - 1;
    const auto outcomes = job.run(ranks_in_job(), [culprit](Bootstrap& rank) {
        if (rank.rank() != culprit) return rank.barrier();
        rank.abort("the disk is full");
        return rank.barrier();
    });
    EXPECT_THAT(outcomes, Each(FailedWith(Code::aborted, fmt::format("rank {} (pid ", culprit))));
    EXPECT_THAT(outcomes, Each(FailedWith(Code::aborted, "aborted the job: the disk is full")));
}

// Where the other ranks take longer than the limit, the failure lists them too: the limit doubles until they do not.
TEST_P(UidFailureSizes, ReportsAMissingRank) {
    const int missing = ranks_in_job() / 2;
    auto ranks = ThreadJob::all_ranks(ranks_in_job());
    ranks.erase(ranks.begin() + missing);
    std::vector<Status> outcomes;
    int limit = 300;
    do {
        auto variables = exchange(ranks_in_job());
        variables["BOOTSTRAP_TIMEOUT"] = fmt::format("{}ms", limit);
        const ThreadJob job(variables);
        outcomes = job.run(ranks, ranks_in_job(), one_barrier);
        limit *= 2;
    } while (limit < 60000 && outcomes.front().message().find("ranks ") != std::string::npos);
    EXPECT_THAT(outcomes, Each(FailedWith(Code::timeout,
                                          fmt::format("rank {} of {} never joined within", missing, ranks_in_job()))));
}

TEST_P(UidFailureSizes, ReportsARankThatCallsAnotherCollective) {
    const ThreadJob job(exchange(ranks_in_job()));
    const auto outcomes = job.run(ranks_in_job(), [&](Bootstrap& rank) {
        if (rank.rank() != 1) return rank.barrier();
        std::vector<std::byte> all(8 * static_cast<std::size_t>(rank.nranks()));
        return rank.allgather(std::vector<std::byte>(8), all);
    });
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "allgather #1 of 8 bytes per rank")));
}

TEST_P(UidFailureSizes, DifferentSizesAreAnErrorEverywhere) {
    const ThreadJob job(exchange(ranks_in_job()));
    const auto outcomes = job.run(ranks_in_job(), [](Bootstrap& rank) {
        const std::size_t bytes = rank.rank() == rank.nranks() - 1 ? 16 : 8;
        std::vector<std::byte> all(bytes * static_cast<std::size_t>(rank.nranks()));
        return rank.allgather(std::vector<std::byte>(bytes), all);
    });
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "of 16 bytes per rank")));
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "of 8 bytes per rank")));
}

TEST_P(UidFailureSizes, ReportsARankThatDisconnectsWhileJoining) {
    const ThreadJob job(exchange(ranks_in_job()));
    const int n = ranks_in_job();
    auto ranks = ThreadJob::all_ranks(n);
    ranks.pop_back();
    std::vector<Outcome> outcomes;
    std::thread others([&] { outcomes = job.run(ranks, n, one_barrier); });
    {
        Channel channel = greeted(job);
        Join join{Identity::of_this_process(n - 1), n, library_version, Milliseconds{60000}, Address{}, {}, {}};
        channel.queue(FrameType::join, {join.encode()});
        channel.flush();
    }  // closes without a word
    others.join();
    EXPECT_THAT(outcomes, Each(FailedWith(Code::peer_dead, fmt::format("rank {} (pid ", n - 1))));
    EXPECT_THAT(outcomes, Each(FailedWith(Code::peer_dead, "closed its connection while the job was starting")));
}

TEST_P(UidFailureSizes, ARankWhoseProcessHasEndedIsNotWaitedFor) {
    const int n = ranks_in_job();
    const ThreadJob before(exchange(ranks_in_job()));
    auto ranks = ThreadJob::all_ranks(n);
    ranks.erase(ranks.begin() + n / 2);
    const auto expected = FailedWith(Code::peer_dead, "PE x exited with status 0 without calling npushmem_init");
    EXPECT_THAT(before.rank_ended(n / 2, n, "PE x exited with status 0"), Succeeded());
    EXPECT_THAT(before.run(ranks, n, one_barrier), Each(expected));

    const ThreadJob meanwhile(exchange(ranks_in_job()));
    std::vector<Outcome> outcomes;
    std::thread others([&] { outcomes = meanwhile.run(ranks, n, one_barrier); });
    EXPECT_THAT(meanwhile.rank_ended(n / 2, n, "PE x exited with status 0"), Succeeded());
    others.join();
    EXPECT_THAT(outcomes, Each(expected));
}

TEST(UidFailure, TheEndOfARankOfAnotherJobChangesNothing) {
    const ThreadJob job;
    EXPECT_THAT(job.rank_ended(1, 4, "PE 1 of 4 ended"), Succeeded());
    EXPECT_THAT(job.run(3, one_barrier), Each(Succeeded()));
    ThreadJob other;
    EXPECT_THAT(other.rank_ended(1, 3, "PE 1 of 3 ended"), Succeeded());
    EXPECT_THAT(job.run(3, one_barrier), Each(Succeeded()));
    UniqueId elsewhere = job.id();
    elsewhere.service = Address::parse("127.0.0.1", 1).value();
    other.use(elsewhere);
    EXPECT_THAT(other.rank_ended(1, 3, "PE 1 ended"), FailedWith(Code::state, "127.0.0.1:1"));
    other.use(UniqueId{});
    EXPECT_FALSE(other.rank_ended(1, 3, "PE 1 ended").ok());
}

class UidFailureExchange : public ExchangeTest {};
INSTANTIATE_TEST_SUITE_P(Exchanges, UidFailureExchange, all_exchanges({0}), exchange_name);

TEST_P(UidFailureExchange, TheIdServesOneJobAfterAnother) {
    const ThreadJob job(exchange(5));
    for (int session = 0; session < 10; ++session) EXPECT_THAT(job.run(5, one_barrier), Each(Succeeded()));
}

TEST_P(UidFailureExchange, RanksMayStartAgainBeforeTheSlowestHasLeft) {
    const ThreadJob job(exchange(4));
    std::vector<Outcome> outcomes(4);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank)
        ranks.emplace_back([&, rank] {
            Status& outcome = outcomes[static_cast<std::size_t>(rank)];
            for (int session = 0; session < 20 && outcome.ok(); ++session) outcome = job.run_rank(rank, 4, one_barrier);
        });
    for (std::thread& each : ranks) each.join();
    EXPECT_THAT(outcomes, Each(Succeeded()));
}

TEST_P(UidFailureExchange, AnIdServesAgainAfterAFailedStart) {
    const ThreadJob job(exchange(3));
    const auto failing = job.run(3, [](Bootstrap& rank) {
        rank.abort("first try");
        return rank.barrier();
    });
    EXPECT_THAT(failing, Each(FailedWith(Code::aborted, "first try")));
    EXPECT_THAT(job.run(3, one_barrier), Each(Succeeded()));
}

TEST(UidFailure, ADoubleRankIsAnErrorForAll) {
    const ThreadJob job;
    EXPECT_THAT(job.run({0, 1, 1, 2}, 5, one_barrier), Each(FailedWith(Code::state, "rank 1 joined twice")));
}

TEST(UidFailure, DifferentNumbersOfRanksAreAnErrorForAll) {
    const ThreadJob job;
    std::vector<Outcome> outcomes(3);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            outcomes[static_cast<std::size_t>(rank)] = job.run_rank(rank, rank == 2 ? 9 : 8, one_barrier);
        });
    for (std::thread& each : ranks) each.join();
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "says that the job has")));
}

TEST(UidFailure, ALibraryOfAnotherVersionIsAnErrorForAll) {
    const ThreadJob job;
    std::vector<Outcome> outcomes;
    std::thread others([&] { outcomes = job.run({0, 1}, 3, one_barrier); });
    Channel channel = greeted(job);
    Join join{Identity::of_this_process(2), 3, {99, 0, 0}, Milliseconds{60000}, Address{}, {}, {}};
    channel.queue(FrameType::join, {join.encode()});
    channel.flush();
    others.join();
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "runs npushmem ")));
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "99.0.0")));
}

TEST(UidFailure, ARankOf0_2_0IsReportedAtOnce) {
    const ThreadJob job;
    std::vector<Outcome> outcomes;
    std::thread others([&] { outcomes = job.run({0, 1}, 3, one_barrier); });
    Channel channel = greeted(job);
    Buffer join = Join{Identity::of_this_process(2), 3, {0, 1, 9}, Milliseconds{60000}, Address{}, {}, {}}.encode();
    constexpr std::size_t added_since = 56;
    join.resize(join.size() - added_since);
    channel.queue(FrameType::join, {join});
    channel.flush();
    others.join();
    EXPECT_THAT(outcomes, Each(FailedWith(Code::mismatch, "0.1.9")));
}

TEST(UidFailure, AWrongSecretFailsItsSenderOnly) {
    const ThreadJob job;
    UniqueId forged = job.id();
    forged.credentials.secret[5] ^= std::byte{1};
    ThreadJob forger;
    forger.use(forged);
    Status refused;
    std::thread stranger([&] { refused = forger.run_rank(1, 3, one_barrier); });
    EXPECT_THAT(job.run(3, one_barrier), Each(Succeeded()));
    stranger.join();
    EXPECT_THAT(refused, FailedWith(Code::protocol, "does not know this job's secret"));
}

TEST(UidFailure, UnauthenticatedConnectionsDoNotDisturbTheStart) {
    const ThreadJob job;
    std::vector<RawClient> crowd;
    for (int i = 0; i < 50; ++i) {
        crowd.emplace_back(job.id().service);
        if (i % 3 == 1) crowd.back().send(Buffer(1000, std::byte{0x41}));
        if (i % 3 == 2) crowd.back().send(Buffer(3, std::byte{'N'}));
    }
    EXPECT_THAT(job.run(8, one_barrier), Each(Succeeded()));
}

TEST(UidFailure, AMemberThatSendsGarbageFailsTheStartButNotTheService) {
    const ThreadJob job;
    std::vector<Outcome> outcomes;
    std::thread others([&] { outcomes = job.run({0, 1}, 3, one_barrier); });
    const UniqueId id = job.id();
    const RawClient client(id.service);
    const ConnectionKeys keys = client.greet(id.credentials, 0);
    const Join join{Identity::of_this_process(2), 3, library_version, Milliseconds{60000}, Address{}, {}, {}};
    client.send(raw_frame(keys.connector, 0, 0, FrameType::join, join.encode()));
    client.send(Buffer(100, std::byte{0x42}));
    others.join();
    EXPECT_THAT(outcomes, Each(FailedWith(Code::protocol, "rank 2")));
    EXPECT_THAT(job.run(3, one_barrier), Each(Succeeded()));
}

TEST_P(UidFailureExchange, ACleanCloseIsNoErrorUntilTheRankIsNeeded) {
    const ThreadJob job(exchange(2));
    std::atomic<bool> closed = false;
    std::vector<Outcome> outcomes(2);
    std::thread leaver([&] {
        {
            auto opened = job.open(1, 2);
            outcomes[1] = opened.ok() ? opened.value()->barrier() : opened.status();
        }
        closed.store(true, std::memory_order_release);  // partner: the wait below
        closed.notify_one();
    });
    auto opened = job.open(0, 2);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_THAT(opened.value()->barrier(), Succeeded());
    closed.wait(false, std::memory_order_acquire);  // partner: the store above
    for (int i = 0; i < 3; ++i) EXPECT_THAT(opened.value()->check(), Succeeded());
    EXPECT_THAT(opened.value()->barrier(), FailedWith(Code::peer_dead, "rank 1 (pid "));
    EXPECT_THAT(opened.value()->check(), FailedWith(Code::peer_dead, "left the job"));
    leaver.join();
    EXPECT_THAT(outcomes[1], Succeeded());
}

TEST_P(UidFailureExchange, CheckSeesAnAbortWithoutBlocking) {
    const ThreadJob job(exchange(2));
    const auto outcomes = job.run(2, [](Bootstrap& rank) {
        if (rank.rank() == 1) {
            rank.abort("enough");
            return rank.barrier();
        }
        Status seen;
        while (seen.ok()) seen = rank.check();
        return seen;
    });
    EXPECT_THAT(outcomes, Each(FailedWith(Code::aborted, "enough")));
}

TEST_P(UidFailureExchange, ALiveRankThatSkipsACollectiveCausesATimeout) {
    auto variables = exchange(3);
    variables["BOOTSTRAP_COLLECTIVE_TIMEOUT"] = "200ms";
    const ThreadJob job(variables);
    const auto outcomes = job.run(3, [](Bootstrap& rank) {
        if (rank.rank() != 2) return rank.barrier();
        Status seen;
        while (seen.ok()) seen = rank.check();
        return seen;
    });
    EXPECT_THAT(outcomes, Each(FailedWith(Code::timeout, "waited 200 ms for rank 2 (pid ")));
}

TEST(UidFailure, WaitingRanksReportTheEndOfTheService) {
    const Address any = Address::parse("127.0.0.1", 0).value();
    auto service = std::move(RendezvousService::listen(any)).value();
    const UniqueId id = UniqueId::make(service->address()).value();
    service->add_job(id.credentials);
    ASSERT_THAT(service->begin(), Succeeded());
    // Rank 0 may reach the service before it ends or find nobody: the message names the service either way.
    ThreadJob job(ThreadJob::Variables{{"BOOTSTRAP_TIMEOUT", "500ms"}});
    job.use(id);
    Status outcome;
    std::thread rank([&] { outcome = job.run_rank(0, 2, one_barrier); });
    (void)greeted(job);
    service.reset();
    rank.join();
    EXPECT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.message(), HasSubstr("the rendezvous service"));
}

TEST(UidFailure, AnUnusedAddressTimesOutAndIsReported) {
    auto service = std::move(RendezvousService::listen(Address::parse("127.0.0.1", 0).value())).value();
    const UniqueId id = UniqueId::make(service->address()).value();
    service.reset();
    ThreadJob job(ThreadJob::Variables{{"BOOTSTRAP_TIMEOUT", "100ms"}});
    job.use(id);
    EXPECT_THAT(
        job.run_rank(0, 2, one_barrier),
        FailedWith(Code::timeout, fmt::format("could not reach the rendezvous service at {}", id.service.text())));
}

TEST(UidFailure, DetectsAnotherProtocolAtTheAddress) {
    auto listener = std::move(Socket::listen(Address::parse("127.0.0.1", 0).value())).value();
    ThreadJob job;
    job.use(UniqueId::make(listener.local_address()).value());
    std::thread server([&] {
        pollfd waiting{listener.fd(), POLLIN, 0};
        ::poll(&waiting, 1, 20000);
        int error = 0;
        const Socket client = listener.accept(error);
        (void)client.send(Buffer(200, std::byte{'H'}));
        std::array<std::byte, 100> sink{};
        waiting = {client.fd(), POLLIN, 0};
        while (::poll(&waiting, 1, 20000) == 1 && client.receive(sink).outcome == Transfer::Outcome::some) {
        }
    });
    EXPECT_THAT(job.run_rank(0, 2, one_barrier), FailedWith(Code::protocol, "not a frame of this protocol"));
    server.join();
}

}  // namespace
}  // namespace npushmem::uid
