// SPDX-License-Identifier: BSD-3-Clause
// PEs that die or do not arrive while others wait for them, in processes without a launcher.
#include <gmock/gmock.h>

#include <csignal>

#include "npushmem/plugin/abi.h"
#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/plain_world.hpp"
#include "tests/integration/api/transport_selections.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Steps = std::vector<std::string>;

// A call that blocks until another PE does something.
struct Call {
    const char* name;
    const char* step;
};
void PrintTo(const Call& call, std::ostream* out) { *out << call.step; }

constexpr Call calls[] = {
    {"barrier", "barrier"},  {"sync", "sync"}, {"wait_until", "wait=5"}, {"signal_wait", "signal_wait"},
    {"malloc", "malloc=64"}, {"free", "free"}, {"finalize", "finalize"}, {"stream_wait", "stream_wait=5"},
};

struct TransportSetup {
    std::string name;
    std::vector<std::string> environment;
};
void PrintTo(const TransportSetup& transport_setup, std::ostream* out) { *out << transport_setup.name; }

std::vector<TransportSetup> transport_setups() {
    std::vector<TransportSetup> transport_setups{{"mapped", {}},
                                                 {"not_mapped", {"NPUSHMEM_TRANSPORTS=self,nomap(p2p)"}},
                                                 {"faulty", {"NPUSHMEM_TRANSPORTS=self,fault(p2p)"}}};
    for (const std::string& selection : unmapped_self_selections())
        transport_setups.push_back({name_of_selection(selection), {"NPUSHMEM_TRANSPORTS=" + selection}});
    return transport_setups;
}

class Failure : public ::testing::TestWithParam<std::tuple<Call, TransportSetup>> {
protected:
    ~Failure() override { EXPECT_EQ(leftovers_.found(), ""); }

    Leftovers leftovers_;
};

// "killed" includes rank 0, which serves the id.
TEST_P(Failure, AKilledPeIsNamedToThoseThatWaitForIt) {
    const auto& [call, transport_setup] = GetParam();
    for (const int victim : {0, 2}) {
        SCOPED_TRACE("victim " + std::to_string(victim));
        WorldSettings settings;
        settings.environment = transport_setup.environment;
        const std::string rank = std::to_string(victim);
        PlainWorld world(4,
                         {"id", "attr", "calloc=64", "barrier", "report=up", rank + ":pause", call.step, "print",
                          "report=told", "hold"},
                         settings);
        world.wait_for_reports(4);
        world.kill(victim, SIGKILL);
        // The other victim stays a zombie while its peers check it.
        if (victim == 0) {
            EXPECT_EQ(world.status(victim), 128 + SIGKILL);
        }
        // No PE ends before all have reported: the others would report its end as the cause.
        world.wait_for_reports(7);
        world.release();
        for (int other = 0; other < 4; ++other) {
            if (other == victim) continue;
            EXPECT_EQ(world.status(other), 0) << world.errors(other);
            EXPECT_THAT(world.output(other),
                        AllOf(HasSubstr(std::to_string(NPUSHMEM_E_PEER_DEAD)), HasSubstr("PE " + rank)));
        }
    }
}

// The deadline ends a wait for a PE that lives but does not arrive; afterwards the process can finalize.
TEST_P(Failure, ATimeoutEndsAWaitForAPeThatDoesNotArrive) {
    const auto& [call, transport_setup] = GetParam();
    WorldSettings settings;
    settings.environment = transport_setup.environment;
    settings.environment.push_back("NPUSHMEM_TIMEOUT=1s");  // enough for calloc on a loaded machine
    PlainWorld world(3, {"id", "attr", "calloc=64", "report=up", "1:hold", "1:exit=0", call.step, "print"}, settings);
    for (const int rank : {0, 2}) {
        EXPECT_EQ(world.status(rank), 0) << world.errors(rank);
        EXPECT_THAT(world.output(rank), AnyOf(HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)),
                                              HasSubstr(std::to_string(NPUSHMEM_E_PEER_DEAD))));
        EXPECT_THAT(world.output(0) + world.output(2), HasSubstr(std::to_string(NPUSHMEM_E_TIMEOUT)));
        // A wait for a value does not know its writer; a barrier knows the missing PE.
        const bool meets = std::string_view(call.step).find("wait") == std::string_view::npos;
        if (meets) {
            EXPECT_THAT(world.output(0) + world.output(2), HasSubstr("missing: PE 1"));
        }
    }
    world.release();
    EXPECT_EQ(world.status(1), 0);
}

INSTANTIATE_TEST_SUITE_P(Api, Failure,
                         ::testing::Combine(::testing::ValuesIn(calls), ::testing::ValuesIn(transport_setups())),
                         [](const auto& parameter) {
                             return std::string(std::get<0>(parameter.param).name) + "_" +
                                    std::get<1>(parameter.param).name;
                         });

class Failures : public ::testing::Test {
protected:
    ~Failures() override { EXPECT_EQ(leftovers_.found(), ""); }

private:
    Leftovers leftovers_;
};

// Every call after the first one fails equally fast.
TEST_F(Failures, TheLibraryStaysUsableForWhatNeedsNoDeadPe) {
    PlainWorld world(3, {"id", "attr", "calloc=64", "barrier", "report=up", "1:pause", "barrier", "print", "malloc=8",
                         "print", "finalize", "print"});
    world.wait_for_reports(3);
    world.kill(1, SIGKILL);
    for (const int rank : {0, 2}) {
        EXPECT_EQ(world.status(rank), 0) << world.errors(rank);
        EXPECT_THAT(world.output(rank), HasSubstr("PE 1"));
    }
}

TEST_F(Failures, APeThatEndsWithoutFinalizeIsADeadOne) {
    PlainWorld world(3, {"id", "attr", "barrier", "1:exit=0", "barrier", "print", "report=told", "hold"});
    world.wait_for_reports(2);
    world.release();
    for (const int rank : {0, 2}) {
        EXPECT_EQ(world.status(rank), 0) << world.errors(rank);
        EXPECT_THAT(world.output(rank), AllOf(HasSubstr(std::to_string(NPUSHMEM_E_PEER_DEAD)), HasSubstr("PE 1")));
    }
}

// Kills a PE while the others are in init: PEs connected to it learn of it, the others wait for their timeout.
TEST_F(Failures, APeThatDiesDuringInit) {
    for (const int victim : {0, 1}) {
        const std::string rank = std::to_string(victim);
        WorldSettings settings;
        settings.environment = {"NPUSHMEM_BOOTSTRAP_TIMEOUT=1500ms"};
        PlainWorld world(3, {"id", "report=starting", rank + ":pause", "attr", "print"}, settings);
        world.wait_for_reports(3);
        world.kill(victim, SIGKILL);
        for (int other = 0; other < 3; ++other) {
            if (other == victim) continue;
            EXPECT_EQ(world.status(other), 0) << world.errors(other);
            EXPECT_THAT(world.output(other), HasSubstr("-4")) << "a failure of a peer";
        }
    }
}

TEST_F(Failures, GlobalExitEndsAllWithItsStatus) {
    for (const int status : {0, 5}) {
        run::JobSettings settings;
        settings.with_bootstrap = true;
        run::JobUnderTest job({"-n", "4", API_TEST_FOLDER "/api_scenario", "init", "barrier",
                               "2:global_exit=" + std::to_string(status), "barrier", "pause"},
                              settings);
        EXPECT_EQ(job.end(), status);
    }
}

TEST_F(Failures, GlobalExitWithoutLauncher) {
    PlainWorld world(3, {"id", "attr", "barrier", "1:global_exit=6", "barrier", "pause"});
    EXPECT_EQ(world.status(1), 6);
    for (const int rank : {0, 2}) EXPECT_EQ(world.status(rank), 128 + SIGTERM) << world.errors(rank);
}

TEST_F(Failures, AFailedCallEndsTheJobWhereConfigured) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_ON_ERROR=exit"};
    run::JobUnderTest job(
        {"-n", "3", API_TEST_FOLDER "/api_scenario", "init", "malloc=8", "1:put=17", "barrier", "pause"}, settings);
    EXPECT_EQ(job.end(), 1);
    EXPECT_THAT(job.errors(), HasSubstr("PE 17 does not exist"));
}

TEST_F(Failures, AKillUnderTheLauncherEndsTheJob) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    run::JobUnderTest job({"-n", "4", API_TEST_FOLDER "/api_scenario", "init", "calloc=8", "barrier", "report=up",
                           "barrier", "2:die=9", "wait=5", "pause"},
                          settings);
    EXPECT_EQ(job.reports(4).size(), 4U);
    EXPECT_EQ(job.end(), 128 + SIGKILL);
    EXPECT_THAT(job.errors(), HasSubstr("PE 2"));
}

}  // namespace
}  // namespace npushmem::api_test
