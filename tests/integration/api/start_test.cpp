// SPDX-License-Identifier: BSD-3-Clause
// Start without a launcher: the call sequence and the two job shapes of DeepEP, sessions by host and port, several
// starts in one process, and ranks that are wrong, late or different.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "npushmem/plugin/abi.h"
#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/plain_world.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Steps = std::vector<std::string>;

class Start : public ::testing::Test {
protected:
    ~Start() override { EXPECT_EQ(leftovers_.found(), ""); }

    static std::string code(int number) { return "code=" + std::to_string(number); }

private:
    Leftovers leftovers_;
};

// A free port. Another process could take it before its use, but the system assigns other ports first.
int free_port() {
    const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    return ntohs(address.sin_port);
}

const Steps whole_life{"id", "attr", "barrier", "ring", "finalize", "code=0"};

TEST_F(Start, SequenceOfDeepEp) {
    PlainWorld world(4, whole_life);
    world.expect_success();
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(world.errors(rank), "");
}

// High throughput: eight devices of a host, a world for each local device over all hosts. Single-rank worlds are those
// of a job on one host; two-rank ones of a job on two, here on the same machine. All are up at the same time.
TEST_F(Start, SixteenWorldsOfOneHostSideBySide) {
    const Steps steps{"id", "attr", "report=up", "hold", "barrier", "ring", "finalize", "code=0"};
    std::vector<std::unique_ptr<PlainWorld>> worlds;
    for (int device = 0; device < 8; ++device) {
        worlds.push_back(std::make_unique<PlainWorld>(1, steps));
        worlds.push_back(std::make_unique<PlainWorld>(2, steps));
    }
    for (auto& world : worlds) world->wait_for_reports(world->nranks());
    for (auto& world : worlds) world->release();
    for (auto& world : worlds) world->expect_success();
}

// The same with one process of the host per rank of the world that ends while the other worlds continue.
TEST_F(Start, WorldsEndOnTheirOwn) {
    PlainWorld lasting(2, {"id", "attr", "report=up", "hold", "ring", "finalize", "code=0"});
    lasting.wait_for_reports(2);
    for (int i = 0; i < 3; ++i) PlainWorld(2, whole_life).expect_success();
    lasting.release();
    lasting.expect_success();
}

// Low latency: one world of all ranks.
TEST_F(Start, OneWorldOfEight) { PlainWorld(8, whole_life).expect_success(); }

TEST_F(Start, AProcessThatNobodyStartedIsAJobOfOne) {
    PlainWorld(1, {"init", "ring", "finalize", "code=0"}).expect_success();
}

TEST_F(Start, WorldsOneAfterTheOther) {
    PlainWorld world(3, {"id", "attr", "ring", "finalize", "id", "attr", "ring", "finalize", "code=0"});
    world.expect_success();
}

TEST_F(Start, TheSameIdAgain) {
    PlainWorld world(
        3, {"id", "attr", "ring", "finalize", "attr", "ring", "finalize", "attr", "ring", "finalize", "code=0"});
    world.expect_success();
}

WorldSettings session_settings(int nranks) {
    const int port = free_port();
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_UID_SESSION_ID=127.0.0.1:" + std::to_string(port),
                            "NPUSHMEM_NPES=" + std::to_string(nranks)};
    settings.environment_of = [](int rank) { return Steps{"NPUSHMEM_PE=" + std::to_string(rank)}; };
    return settings;
}

TEST_F(Start, SessionByHostAndPort) {
    PlainWorld world(4, {"init", "ring", "finalize", "init", "ring", "finalize", "code=0"}, session_settings(4));
    world.expect_success();
}

// The first ranks wait until rank 0 listens.
TEST_F(Start, SessionWhoseRankZeroStartsLast) {
    PlainWorld world(3, {"0:hold", "report=starting", "init", "ring", "finalize", "code=0"}, session_settings(3));
    world.wait_for_reports(2);
    world.release();
    world.expect_success();
}

TEST_F(Start, ADamagedIdIsRefused) {
    PlainWorld world(1, {"id", "spoil=60", "attr", "print"});
    world.expect_success();
    EXPECT_THAT(world.output(0), HasSubstr("unique id"));
    PlainWorld zero(1, {"zero", "attr", "print"});
    zero.expect_success();
    EXPECT_THAT(zero.output(0), HasSubstr("unique id"));
}

// Rank 1 has the id of another job: both sides reject it, and both name the missing rank.
TEST_F(Start, TheIdOfAnotherJobJoinsNobody) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_TIMEOUT=1500ms"};
    PlainWorld world(2, {"id", "1:other_id", "attr", "print"}, settings);
    world.expect_success();
    EXPECT_THAT(world.output(0), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)), HasSubstr("1")));
    EXPECT_THAT(world.output(1), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)), HasSubstr("0")));
}

TEST_F(Start, ARankThatNeverArrivesIsNamed) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_TIMEOUT=1500ms"};
    PlainWorld world(4, {"id", "2:exit=0", "attr", "print"}, settings);
    world.expect_success();
    for (const int rank : {0, 1, 3}) {
        EXPECT_THAT(world.output(rank),
                    AllOf(HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)), HasSubstr("rank"), HasSubstr("2")))
            << rank;
    }
}

// The others report a rank that fails before it connects.
TEST_F(Start, ARankWithAMalformedVariableDoesNotHangTheOthers) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_TIMEOUT=1500ms"};
    settings.environment_of = [](int rank) { return rank == 1 ? Steps{"NPUSHMEM_SYMMETRIC_SIZE=many"} : Steps{}; };
    PlainWorld world(3, {"id", "attr", "print"}, settings);
    world.expect_success();
    EXPECT_THAT(world.output(1),
                AllOf(HasSubstr(std::to_string(NPUSHMEM_E_CONFIG)), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE='many'")));
    for (const int rank : {0, 2})
        EXPECT_THAT(world.output(rank), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)), HasSubstr("1"))) << rank;
}

TEST_F(Start, RanksThatDisagreeAboutTheHeapsSize) {
    WorldSettings settings;
    settings.environment_of = [](int rank) {
        return Steps{rank == 1 ? "NPUSHMEM_SYMMETRIC_SIZE=64M" : "NPUSHMEM_SYMMETRIC_SIZE=32M"};
    };
    PlainWorld world(3, {"id", "attr", "print"}, settings);
    world.expect_success();
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_THAT(
            world.output(rank),
            AllOf(AnyOf(HasSubstr(std::to_string(NPUSHMEM_E_MISMATCH)), HasSubstr(std::to_string(NPUSHMEM_E_ABORTED))),
                  HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"), HasSubstr("67108864"), HasSubstr("33554432")))
            << rank;
}

// A step of the start that fails on one rank only fails on all, with its cause.
TEST_F(Start, AFailureOfOneRankIsReportedToAll) {
    for (const char* variable : {"NPUSHMEM_TRANSPORTS=self,nosuch", "NPUSHMEM_FAULT_FAIL=register_memory:1:system",
                                 "NPUSHMEM_DISABLE_P2P=1"}) {
        for (const int culprit : {0, 2}) {
            SCOPED_TRACE(std::string(variable) + " at rank " + std::to_string(culprit));
            WorldSettings settings;
            settings.environment = {"NPUSHMEM_TRANSPORTS=self,fault(p2p)"};
            settings.environment_of = [&](int rank) { return rank == culprit ? Steps{variable} : Steps{}; };
            PlainWorld world(3, {"id", "attr", "print"}, settings);
            world.expect_success();
            const std::string cause = world.output(culprit);
            EXPECT_THAT(cause, HasSubstr("start-up failed")) << cause;
            for (int rank = 0; rank < 3; ++rank) {
                if (rank == culprit) continue;
                EXPECT_THAT(world.output(rank), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_ABORTED)),
                                                      HasSubstr("rank " + std::to_string(culprit))));
            }
        }
    }
}

// After a failed start the process can start again.
TEST_F(Start, AgainAfterAFailure) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_BOOTSTRAP_TIMEOUT=20s"};
    PlainWorld world(2, {"zero", "attr", "print", "id", "attr", "ring", "finalize", "code=0"}, settings);
    world.expect_success();
}

}  // namespace
}  // namespace npushmem::api_test
