// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/host_sync.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <utility>

namespace npushmem::coll {
namespace {

using ::testing::HasSubstr;

// Signals between members that run one after another: a wait for what has not arrived finds PE 2 dead.
class ScriptedSignals final : public HostSignals {
public:
    using Words = std::map<std::pair<int, std::uint64_t>, std::uint64_t>;  // by member and offset

    ScriptedSignals(Words& words, int own) : words_(words), own_(own) {}

    Status put(int member, std::uint64_t /*offset*/, const void* /*source*/, std::uint64_t bytes,
               std::uint64_t signal_at, std::uint64_t signal) override {
        payloads += bytes > 0 ? 1 : 0;
        words_[{member, signal_at}] = signal;
        return {};
    }
    Result<std::uint64_t> wait(std::uint64_t signal_at, std::uint64_t least, int /*sender*/) override {
        const std::uint64_t word = words_[{own_, signal_at}];
        if (word < least) return Status{failure, "PE 2 has died or is late"};
        return word;
    }
    Status announce(std::uint64_t /*counter_at*/, std::uint64_t step, const Outcome& outcome) override {
        if (outcome.kind != Outcome::ok) HostCounter(line_.data()).fail(step, outcome);
        return {};
    }
    Result<Outcome> wait_for(int /*member*/, std::uint64_t /*counter_at*/, std::uint64_t /*step*/) override {
        return Outcome{};
    }
    int dead_pe() override { return 2; }

    int payloads = 0;
    Code failure = Code::peer_dead;  // of waits

private:
    Words& words_;
    int own_;
    alignas(64) std::array<std::byte, HostCounter::bytes> line_{};
};

const std::vector<std::vector<int>> three_hosts{{0}, {1}, {2}};

// A call in which every member sends to every other.
Status exchange_all(HostSync& sync, int own, const std::uint64_t& payload) {
    Status done;
    std::vector<int> others;
    for (int member = 0; member < 3; ++member)
        if (member != own) others.push_back(member);
    for (const int member : others) done = sync.send(std::move(done), member, 8192, &payload, sizeof payload);
    return sync.settle(std::move(done), others, true);
}

TEST(HostSync, AMessageOfALaterCallIsNotTakenForThePresentOne) {
    ScriptedSignals::Words words;
    ScriptedSignals of_a(words, 0);
    ScriptedSignals of_b(words, 1);
    ScriptedSignals of_d(words, 2);
    HostSync a(of_a, 0, three_hosts, 0);
    HostSync b(of_b, 0, three_hosts, 1);
    HostSync d(of_d, 0, three_hosts, 2);
    const std::uint64_t payload = 7;
    // D sends to B and dies. A calls again and again before B calls once.
    ASSERT_TRUE(d.send({}, 1, 8192, &payload, sizeof payload).ok());
    for (std::uint64_t call = 0; call <= HostSync::turns; ++call) {
        const Status failed = exchange_all(a, 0, payload);
        EXPECT_EQ(failed.code(), Code::peer_dead) << failed.message();
    }
    EXPECT_EQ(of_a.payloads, 2) << "a member that does not know what the others do has sent more than its first call";
    const Status failed = exchange_all(b, 1, payload);
    EXPECT_EQ(failed.code(), Code::protocol) << failed.message();
    EXPECT_THAT(failed.message(), HasSubstr("member 0 of the team has failed in an earlier call"));
}

TEST(HostSync, NamesThePeThatAnotherMemberHasFoundDead) {
    ScriptedSignals::Words words;
    ScriptedSignals of_a(words, 0);
    ScriptedSignals of_b(words, 1);
    HostSync a(of_a, 0, {{0}, {1}}, 0);
    HostSync b(of_b, 0, {{0}, {1}}, 1);
    const std::uint64_t payload = 7;
    EXPECT_EQ(a.send({Code::peer_dead, "PE 2 has died"}, 1, 8192, &payload, sizeof payload).code(), Code::peer_dead);
    EXPECT_EQ(of_a.payloads, 0);
    const Status received = b.receive({}, 0);
    EXPECT_EQ(received.code(), Code::peer_dead);
    EXPECT_THAT(received.message(), HasSubstr("PE 2 has died or finalized, as member 0 of the team has found"));
}

TEST(HostSync, AfterATimeoutSendsNoFailure) {
    ScriptedSignals::Words words;
    ScriptedSignals of_a(words, 0);
    of_a.failure = Code::timeout;
    HostSync a(of_a, 0, {{0}, {1}}, 0);
    const Status late = a.receive({}, 1);
    EXPECT_EQ(late.code(), Code::timeout);
    words.clear();
    EXPECT_EQ(a.send(late, 1, 8192, nullptr, 0).code(), Code::timeout);
    EXPECT_TRUE(words.empty());
}

// Of a silent peer, which is no wait of this member.
TEST(HostSync, ATimeoutOfTheTransportIsReported) {
    ScriptedSignals::Words words;
    ScriptedSignals of_a(words, 0);
    ScriptedSignals of_b(words, 1);
    HostSync a(of_a, 0, {{0}, {1}}, 0);
    HostSync b(of_b, 0, {{0}, {1}}, 1);
    EXPECT_EQ(a.send({Code::timeout, "PE 2 is silent"}, 1, 8192, nullptr, 0).code(), Code::timeout);
    EXPECT_EQ(b.receive({}, 0).code(), Code::protocol);
    EXPECT_TRUE(b.broken().ok());
}

// It no longer waits for anybody, so it does not know who has left the epochs before.
TEST(HostSync, WhoReliesOnAMemberThatHasLeftHasLeft) {
    ScriptedSignals::Words words;
    ScriptedSignals of_a(words, 0);
    ScriptedSignals of_b(words, 1);
    HostSync a(of_a, 0, {{0}, {1}, {2}}, 0);
    HostSync b(of_b, 0, {{0}, {1}, {2}}, 1);
    const Status dead = a.receive({}, 2);
    EXPECT_EQ(a.send(dead, 1, 8192, nullptr, 0).code(), Code::peer_dead);
    EXPECT_EQ(b.receive({}, 0).code(), Code::peer_dead);
    EXPECT_EQ(b.broken().code(), Code::peer_dead);
}

TEST(HostCounter, KeepsTheLastFailures) {
    alignas(64) std::array<std::byte, HostCounter::bytes> line{};
    const HostCounter counter(line.data());
    EXPECT_EQ(counter.outcome(1).kind, Outcome::ok);
    counter.fail(3, {Outcome::failed});
    counter.fail(5, {Outcome::peer_dead, 0x123456});
    EXPECT_EQ(counter.outcome(3).kind, Outcome::failed);
    EXPECT_EQ(counter.outcome(4).kind, Outcome::ok);
    EXPECT_EQ(counter.outcome(5).kind, Outcome::peer_dead);
    EXPECT_EQ(counter.outcome(5).dead_pe, 0x123456);
    constexpr std::uint64_t later = 5 + HostCounter::failures;  // in the place of step 5
    EXPECT_EQ(counter.outcome(later).kind, Outcome::ok);
    counter.fail(later, {Outcome::failed});
    EXPECT_EQ(counter.outcome(5).kind, Outcome::failed) << "a member so far ahead has failed";
}

}  // namespace
}  // namespace npushmem::coll
