// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uid/uid_bootstrap.hpp"
#include "core/base/socket.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>

#include "tests/unit/bootstrap/uid/thread_job.hpp"

namespace npushmem::uid {

using namespace rendezvous;
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// What a rank gives.
std::vector<std::byte> sample(int rank, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(rank * 31 + static_cast<int>(i) * 7 + 1);
    return made;
}

// `in_place`: what this rank gives is in its place of what it receives already.
Status gather_and_check(Bootstrap& job, std::size_t bytes, bool in_place) {
    std::vector<std::byte> all(bytes * static_cast<std::size_t>(job.nranks()));
    std::vector<std::byte> mine = sample(job.rank(), bytes);
    std::span<const std::byte> send(mine);
    if (in_place) {
        const auto place = std::span(all).subspan(static_cast<std::size_t>(job.rank()) * bytes, bytes);
        std::ranges::copy(mine, place.begin());
        send = place;
    }
    if (Status gathered = job.allgather(send, all); !gathered.ok()) return gathered;
    for (int rank = 0; rank < job.nranks(); ++rank) {
        const auto part = std::span(all).subspan(static_cast<std::size_t>(rank) * bytes, bytes);
        if (!std::ranges::equal(part, sample(rank, bytes)))
            return {Code::mismatch, fmt::format("rank {} has wrong bytes of rank {}", job.rank(), rank)};
    }
    return {};
}

class UidBootstrapSizes : public ExchangeTest {
protected:
    ThreadJob job_{exchange(ranks_in_job())};
};

TEST_P(UidBootstrapSizes, GathersAndSynchronises) {
    ASSERT_THAT(job_.made(), Succeeded());
    const auto body = [](Bootstrap& job) -> Status {
        // Several pieces for every rank, or, where that is much, for all together.
        const std::size_t many = job.nranks() <= 8 ? 70000 : 3000;
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{0}, std::size_t{1}, many}) {
            for (const bool in_place : {false, true}) {
                if (Status all = gather_and_check(job, bytes, in_place); !all.ok()) return all;
                if (Status all = job.barrier(); !all.ok()) return all;
            }
        }
        return job.barrier();
    };
    EXPECT_THAT(job_.run(ranks_in_job(), body), Each(Succeeded()));
}

INSTANTIATE_TEST_SUITE_P(Sizes, UidBootstrapSizes, all_exchanges({1, 2, 3, 5, 8, 17, 64}), exchange_name);

TEST_P(UidBootstrapSizes, NobodyLeavesABarrierBeforeAllHaveEntered) {
    std::atomic<int> entered = 0;
    const int n = ranks_in_job();
    const auto body = [&](Bootstrap& job) -> Status {
        for (int round = 1; round <= 5; ++round) {
            // Relaxed: the barrier itself orders, which this test checks.
            entered.fetch_add(1, std::memory_order_relaxed);
            if (Status all = job.barrier(); !all.ok()) return all;
            if (entered.load(std::memory_order_relaxed) < n * round) return {Code::state, "left too early"};
            if (Status all = job.barrier(); !all.ok()) return all;
        }
        return {};
    };
    EXPECT_THAT(job_.run(n, body), Each(Succeeded()));
}

// --- what a job is opened from ---

Result<std::unique_ptr<Bootstrap>> open_with(const ThreadJob::Variables& variables, int rank = -1, int nranks = -1,
                                             const void* id = nullptr) {
    fakes::FakeHost fake;
    for (const auto& [name, value] : variables) fake.set(name, value);
    npushmem_bootstrap_params params{};
    params.struct_size = sizeof params;
    params.rank = rank;
    params.nranks = nranks;
    params.uniqueid = id;
    return UidBootstrap::open(Host(&fake.table(), "uid"), params);
}

std::string hex(const UniqueIdBytes& id) {
    std::string digits;
    for (const std::byte each : id) digits += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return digits;
}

// Ranks 0 and 1 of 2, opened from variables alone; their outcomes.
std::vector<Status> pair_from(const ThreadJob::Variables& of_rank_0, const ThreadJob::Variables& of_rank_1) {
    std::vector<Status> outcomes(2);
    const auto run = [](const ThreadJob::Variables& variables) {
        auto opened = open_with(variables);
        return opened.ok() ? opened.value()->barrier() : opened.status();
    };
    std::thread other([&] { outcomes[1] = run(of_rank_1); });
    outcomes[0] = run(of_rank_0);
    other.join();
    return outcomes;
}

std::string free_loopback_address() {
    return Socket::listen(Address::parse("127.0.0.1", 0).value()).value().local_address().text();
}

TEST(UidBootstrapOpen, AProcessWithoutParametersIsAJobOfOne) {
    auto alone = open_with({});
    ASSERT_THAT(alone.status(), Succeeded());
    EXPECT_EQ(alone.value()->rank(), 0);
    EXPECT_EQ(alone.value()->nranks(), 1);
    EXPECT_THAT(alone.value()->barrier(), Succeeded());
    EXPECT_THAT(gather_and_check(*alone.value(), 5, false), Succeeded());
}

TEST(UidBootstrapOpen, TakesIdRankAndNumberFromTheHost) {
    const std::string id = hex(ThreadJob().id().encode());
    const auto variables = [&](const char* rank) {
        return ThreadJob::Variables{{"UNIQUEID", id}, {"PE", rank}, {"NPES", "2"}};
    };
    EXPECT_THAT(pair_from(variables("0"), variables("1")), Each(Succeeded()));
}

TEST(UidBootstrapOpen, RanksOfASessionNeedNoUniqueId) {
    const std::string session = free_loopback_address();
    const auto variables = [&](const char* rank) {
        return ThreadJob::Variables{{"BOOTSTRAP_UID_SESSION_ID", session}, {"PE", rank}, {"NPES", "2"}};
    };
    EXPECT_THAT(pair_from(variables("0"), variables("1")), Each(Succeeded()));
    EXPECT_THAT(pair_from(variables("0"), variables("1")), Each(Succeeded())) << "and may start again";
}

TEST(UidBootstrapOpen, ASessionReportsAPortThatIsInUse) {
    auto taken = Socket::listen(Address::parse("127.0.0.1", 0).value());
    ASSERT_TRUE(taken.ok());
    const std::string session = taken.value().local_address().text();
    const auto variables = [&](const char* rank) {
        return ThreadJob::Variables{
            {"BOOTSTRAP_UID_SESSION_ID", session}, {"PE", rank}, {"NPES", "2"}, {"BOOTSTRAP_TIMEOUT", "300ms"}};
    };
    const auto outcomes = pair_from(variables("0"), variables("1"));
    EXPECT_THAT(outcomes[0].message(), HasSubstr(session));
    EXPECT_THAT(outcomes[1].message(), HasSubstr(session));
}

TEST(UidBootstrapOpen, ASessionWithoutAServiceTimesOutAndReportsItsAddress) {
    const std::string session = free_loopback_address();
    fakes::FakeHost fake;
    for (const auto& [name, value] : ThreadJob::Variables{
             {"BOOTSTRAP_UID_SESSION_ID", session}, {"PE", "1"}, {"NPES", "2"}, {"BOOTSTRAP_TIMEOUT", "300ms"}})
        fake.set(name, value);
    npushmem_bootstrap_params params{sizeof params, -1, -1, 0, nullptr, nullptr};
    const auto opened = UidBootstrap::open(Host(&fake.table(), "uid"), params);
    EXPECT_EQ(opened.status().code(), Code::timeout);
    EXPECT_THAT(opened.status().message(), HasSubstr(session));
}

TEST(UidBootstrapOpen, ASessionRejectsAWrongPassword) {
    const std::string session = free_loopback_address();
    const auto variables = [&](const char* rank, const char* password) {
        return ThreadJob::Variables{{"BOOTSTRAP_UID_SESSION_ID", session},
                                    {"PE", rank},
                                    {"NPES", "2"},
                                    {"BOOTSTRAP_UID_SESSION_SECRET", password},
                                    {"BOOTSTRAP_TIMEOUT", "300ms"}};
    };
    const auto outcomes = pair_from(variables("0", "right"), variables("1", "wrong"));
    EXPECT_THAT(outcomes[0].message(), HasSubstr("rank 1 of 2 never joined"));
    EXPECT_THAT(outcomes[1].message(), HasSubstr("does not know this job's secret"));
}

TEST(UidBootstrapOpen, ReportsMissingAndMalformedParameters) {
    const UniqueIdBytes id = ThreadJob().id().encode();
    const auto message = [](const Result<std::unique_ptr<Bootstrap>>& opened) { return opened.status().message(); };
    EXPECT_THAT(message(open_with({{"UNIQUEID", "abc"}})), HasSubstr("NPUSHMEM_UNIQUEID: not a unique id"));
    EXPECT_THAT(message(open_with({{"PE", "x"}})), HasSubstr("NPUSHMEM_PE='x' is not a whole number"));
    EXPECT_THAT(message(open_with({}, 0, 2)), HasSubstr("rank 0 of 2 has no unique id"));
    EXPECT_THAT(message(open_with({}, -1, 2, id.data())), HasSubstr("no rank"));
    EXPECT_THAT(message(open_with({}, 0, -1, id.data())), HasSubstr("no number of ranks"));
    EXPECT_THAT(message(open_with({}, 2, 2, id.data())), HasSubstr("rank 2 is outside a job of 2 ranks"));
    EXPECT_THAT(message(open_with({}, 0, 0, id.data())), HasSubstr("cannot have 0 ranks"));
    EXPECT_THAT(message(open_with({{"BOOTSTRAP_UID_SESSION_ID", "nohost"}}, 0, 2)),
                HasSubstr("NPUSHMEM_BOOTSTRAP_UID_SESSION_ID"));
}

TEST(UidBootstrapOpen, ReportsAMissingInterfaceWithTheAvailableOnes) {
    fakes::FakeHost fake;
    fake.set("BOOTSTRAP_UID_SOCK_IFNAME", "=nosuch0");
    UniqueIdBytes id{};
    const Status refused = UidBootstrap::get_uniqueid(Host(&fake.table(), "uid"), id);
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_THAT(refused.message(), HasSubstr("lo (127.0.0.1"));
}

TEST(UidBootstrapOpen, ARankWithoutItsInterfaceFailsTheStartOfAllRanks) {
    const std::string id = hex(ThreadJob().id().encode());
    const ThreadJob::Variables good{{"UNIQUEID", id}, {"PE", "1"}, {"NPES", "2"}};
    const ThreadJob::Variables bad{
        {"UNIQUEID", id}, {"PE", "0"}, {"NPES", "2"}, {"BOOTSTRAP_UID_SOCK_IFNAME", "=nosuch0"}};
    for (const Status& outcome : pair_from(bad, good)) {
        EXPECT_EQ(outcome.code(), Code::config);
        EXPECT_THAT(outcome.message(), HasSubstr("rank 0 (pid "));
        EXPECT_THAT(outcome.message(), HasSubstr("nosuch0"));
    }
}

TEST(UidBootstrapAllgather, RefusesAReceiveBufferOfTheWrongSize) {
    auto alone = open_with({});
    ASSERT_THAT(alone.status(), Succeeded());
    std::vector<std::byte> all(9);
    EXPECT_EQ(alone.value()->allgather(std::vector<std::byte>(8), all).code(), Code::argument);
}

}  // namespace
}  // namespace npushmem::uid
