// SPDX-License-Identifier: BSD-3-Clause
// What the contract cannot know: the variables of this bootstrap and the texts of its failures. Ranks are threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <thread>
#include <utility>

#include "mine_bootstrap.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace mine_plugin {
namespace {

using npushmem::Bootstrap;
using npushmem::Host;
using npushmem::fakes::FakeHost;

npushmem_bootstrap_params params_of(int rank, int nranks) {
    npushmem_bootstrap_params out{};
    out.struct_size = sizeof out;
    out.rank = rank;
    out.nranks = nranks;
    return out;
}

std::string session(const char* test) { return std::string(test) + std::to_string(::getpid()); }

using Opened = Result<std::unique_ptr<Bootstrap>>;

// Runs `body` for each rank in a thread of its own.
void run_ranks(FakeHost& host, int nranks, const std::function<void(int, Opened)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < nranks; ++rank)
        threads.emplace_back([&host, &body, rank, nranks] {
            body(rank, MineBootstrap::open(Host(&host.table(), "mine"), params_of(rank, nranks)));
        });
    for (auto& thread : threads) thread.join();
}

TEST(MineBootstrap, RanksOfASessionExchangeTheirBytes) {
    FakeHost host;
    host.set("MINE_SESSION", session("exchange"));
    run_ranks(host, 3, [](int rank, const Opened& opened) {
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        const auto own = static_cast<std::byte>(rank + 1);
        std::byte all[3] = {};
        const Status gathered = opened.value()->allgather({&own, 1}, all);
        ASSERT_TRUE(gathered.ok()) << gathered.message();
        EXPECT_TRUE(all[0] == std::byte{1} && all[1] == std::byte{2} && all[2] == std::byte{3});
    });
}

TEST(MineBootstrap, ARankThatDoesNotJoinIsNamed) {
    FakeHost host;
    host.set("MINE_SESSION", session("missing"));
    host.set("BOOTSTRAP_TIMEOUT", "50ms");
    const auto opened = MineBootstrap::open(Host(&host.table(), "mine"), params_of(0, 2));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), Code::timeout);
    EXPECT_NE(opened.status().message().find("rank 1 did not join"), std::string::npos) << opened.status().message();
}

TEST(MineBootstrap, TheReasonOfAnAbortReachesARankThatIsInNoCall) {
    FakeHost host;
    host.set("MINE_SESSION", session("abort"));
    run_ranks(host, 2, [](int rank, const Opened& opened) {
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        if (rank == 1) return opened.value()->abort("no memory");
        Status seen;
        const auto end = Clock::now() + std::chrono::seconds(20);
        while (seen.ok() && Clock::now() < end) {
            seen = opened.value()->check();
            std::this_thread::yield();
        }
        EXPECT_EQ(seen.code(), Code::aborted);
        EXPECT_EQ(seen.message(), "rank 1 aborted the job: no memory");
    });
}

TEST(MineBootstrap, DifferentNumbersOfRanksAreRefused) {
    FakeHost host;
    host.set("MINE_SESSION", session("number"));
    std::thread other([&host] {
        const auto opened = MineBootstrap::open(Host(&host.table(), "mine"), params_of(1, 3));
        EXPECT_EQ(opened.status().code(), Code::mismatch) << opened.status().message();
    });
    const auto opened = MineBootstrap::open(Host(&host.table(), "mine"), params_of(0, 2));
    EXPECT_EQ(opened.status().code(), Code::mismatch) << opened.status().message();
    other.join();
}

TEST(MineBootstrap, WhatIsMissingOrInvalidIsNamed) {
    FakeHost host;
    const auto message_of = [&](int rank, int nranks) {
        return MineBootstrap::open(Host(&host.table(), "mine"), params_of(rank, nranks)).status().message();
    };
    EXPECT_NE(message_of(0, 2).find("NPUSHMEM_MINE_SESSION"), std::string::npos);
    host.set("MINE_SESSION", session("invalid"));
    EXPECT_NE(message_of(2, 2).find("rank 2 of 2"), std::string::npos);
    host.set("BOOTSTRAP_TIMEOUT", "soon");
    EXPECT_NE(message_of(0, 2).find("NPUSHMEM_BOOTSTRAP_TIMEOUT='soon'"), std::string::npos);
}

std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> make_id(const FakeHost& host) {
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id{};
    const Status made = MineBootstrap::get_uniqueid(Host(&host.table(), "mine"), id);
    EXPECT_TRUE(made.ok()) << made.message();
    return id;
}

// As a launcher puts an id into NPUSHMEM_UNIQUEID.
std::string digits_of(std::span<const std::byte> id) {
    std::string out;
    for (const std::byte each : id)
        for (const unsigned shift : {4U, 0U}) out += "0123456789abcdef"[std::to_integer<unsigned>(each) >> shift & 15U];
    return out;
}

TEST(MineBootstrap, AnIdOfWhichAnyByteIsChangedIsRefused) {
    FakeHost host;
    const Host given(&host.table(), "mine");
    auto id = make_id(host);
    npushmem_bootstrap_params params = params_of(0, 1);
    params.uniqueid = id.data();
    EXPECT_TRUE(MineBootstrap::open(given, params).ok());
    for (std::size_t i = 0; i < id.size(); ++i) {
        id[i] ^= std::byte{1};
        const Status refused = MineBootstrap::open(given, params).status();
        host.set("UNIQUEID", digits_of(id));
        const Status as_variable = MineBootstrap::open(given, params_of(0, 1)).status();
        id[i] ^= std::byte{1};
        EXPECT_EQ(refused.code(), Code::argument) << "byte " << i;
        EXPECT_EQ(as_variable.code(), Code::config) << "byte " << i;
        EXPECT_NE(refused.message().find("no unique id of the bootstrap mine: "), std::string::npos)
            << refused.message();
    }
}

TEST(MineBootstrap, AVariableThatIsNoIdIsRefusedWithARemedyAndWithoutItsSecret) {
    FakeHost host;
    const std::string good = digits_of(make_id(host));
    std::string with_sign = good;
    with_sign[100] = '-';
    for (const std::string& text : {std::string("job1"), good.substr(2), good + "00", with_sign, " " + good}) {
        host.set("UNIQUEID", text);
        const Status refused = MineBootstrap::open(Host(&host.table(), "mine"), params_of(0, 2)).status();
        EXPECT_EQ(refused.code(), Code::config) << text;
        for (const char* part : {"NPUSHMEM_UNIQUEID='", "256 hexadecimal digits", "NPUSHMEM_BOOTSTRAP=mine"})
            EXPECT_NE(refused.message().find(part), std::string::npos) << part << ": " << refused.message();
        EXPECT_EQ(refused.message().find(good.substr(18, 16)), std::string::npos) << "of the secret";
    }
}

TEST(MineBootstrap, PlacesOutsideTheJobAreRefused) {
    FakeHost host;
    const Host given(&host.table(), "mine");
    host.set("MINE_SESSION", session("places"));
    for (const auto& [rank, nranks] : {std::pair(1, 1), {-2, 1}, {2, 2}, {-1, 2}, {0, 0}, {0, -2}, {0, -1}}) {
        const Status refused = MineBootstrap::open(given, params_of(rank, nranks)).status();
        EXPECT_EQ(refused.code(), Code::range) << "rank " << rank << " of " << nranks << ": " << refused.message();
    }
    host.set("PE", "-2");
    const Status refused = MineBootstrap::open(given, params_of(-1, 1)).status();
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_NE(refused.message().find("NPUSHMEM_PE='-2'"), std::string::npos) << refused.message();
    host.set("PE", "-1");
    EXPECT_TRUE(MineBootstrap::open(given, params_of(-1, 1)).ok());
}

TEST(MineBootstrap, RanksMeetByTheIdThatALauncherSets) {
    FakeHost host;
    host.set("UNIQUEID", digits_of(make_id(host)));
    run_ranks(host, 2, [](int /*rank*/, const Opened& opened) {
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        EXPECT_TRUE(opened.value()->barrier().ok());
    });
}

TEST(MineBootstrap, AProcessWithoutAnyVariableIsAJobOfItsOwn) {
    FakeHost host;
    const auto opened = MineBootstrap::open(Host(&host.table(), "mine"), params_of(-1, -1));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(opened.value()->nranks(), 1);
    EXPECT_TRUE(opened.value()->barrier().ok());
}

}  // namespace
}  // namespace mine_plugin
