// SPDX-License-Identifier: BSD-3-Clause
// Jobs over the network transports. Their two hosts are emulated ones on this machine: their PEs cannot map each
// other's memory, so their operations go over the network's loopback.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/liveness.hpp"
#include "npushmem/plugin/abi.h"
#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/transport_selections.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

run::JobSettings settings_with(const Words& environment) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_INFO=1", "NPUSHMEM_SYMMETRIC_SIZE=16M",
                            // Concurrent tests create other interfaces.
                            "NPUSHMEM_TCP_IFNAME=lo", "NPUSHMEM_LIBFABRIC_DOMAIN=lo", "NPUSHMEM_UCX_NET_DEVICES=lo",
                            // On a busy machine a silent peer is not lost.
                            "NPUSHMEM_TCP_PEER_TIMEOUT=0", "NPUSHMEM_LIBFABRIC_PEER_TIMEOUT=0",
                            "NPUSHMEM_UCX_PEER_TIMEOUT=0"};
    settings.environment.insert(settings.environment.end(), environment.begin(), environment.end());
    return settings;
}

// The end and the reports of a job that the launcher started with these arguments.
std::pair<int, std::string> run_job(const Words& words, const Words& environment) {
    const Leftovers leftovers;
    run::JobUnderTest job(words, settings_with(environment));
    const int status = job.end();
    EXPECT_EQ(leftovers.found(), "");
    return {status, job.errors()};
}

// The report of two PEs that check puts and gets.
std::pair<int, std::string> run_rma(const Words& environment, const std::string& nodes = "2") {
    return run_job({"-n", "2", "--nodes", nodes, std::string(API_TEST_FOLDER) + "/api_rma"}, environment);
}

class RemoteTransport : public ::testing::TestWithParam<std::string> {};

TEST_P(RemoteTransport, CarriesPutsAndGetsBetweenHosts) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam()});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, AllOf(HasSubstr("pe 1: " + GetParam() + " ("), Not(HasSubstr("between hosts: "))));
}

// Neighbours are on different hosts; PEs of one host are not neighbours.
TEST_P(RemoteTransport, TeamsOfPesThatAreDealtInTurn) {
    const auto [status, report] =
        run_job({"-n", "5", "--nodes", "2", "--map-by", "round-robin", std::string(API_TEST_FOLDER) + "/api_teams"},
                {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0"});
    EXPECT_EQ(status, 0) << report;
}

// Some PEs mapped, some not.
TEST_P(RemoteTransport, KeepsContextsAndThreadsApart) {
    for (const char* program : {"contexts", "threads", "handles", "streams", "forks", "buffers"})
        for (const char* pes : {"2", "4"}) {
            const auto [status, report] =
                run_job({"-n", pes, "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_" + program},
                        {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0"});
            EXPECT_EQ(status, 0) << program << " with " << pes << " PEs: " << report;
        }
}

// The last PE exits with 0 while the PEs of the other hosts wait for it.
TEST_P(RemoteTransport, ReportsAPeOfAnotherHostThatHasExited) {
    const auto [status, report] =
        run_job({"-n", "3", "--nodes", "3", std::string(API_TEST_FOLDER) + "/api_openshmem_mistakes", "leave", "0"},
                {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0", "NPUSHMEM_TIMEOUT=30s"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, AllOf(HasSubstr("PE 2 has died or finalized"), Not(HasSubstr(": timed out"))));
}

// It neither finalizes nor sends anything, and without a limit for silence only its host knows that it has ended.
TEST_P(RemoteTransport, ReportsAPeOfAnotherHostThatHasEndedWithoutFinalize) {
    const auto [status, report] = run_job({"-n", "3", "--nodes", "3", std::string(API_TEST_FOLDER) + "/api_scenario",
                                           "init", "barrier", "2:exit=0", "barrier"},
                                          {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, HasSubstr("PE 2"));
}

// The holder lives on the other host and cannot release it any more; a PE of the home's host still maps the word.
TEST_P(RemoteTransport, ALockIsLostWithItsHomePe) {
    const std::string peer_dead = std::to_string(NPUSHMEM_E_PEER_DEAD);
    const auto [status, report] =
        run_job({"-n", "4", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_scenario", "init", "calloc=64",
                 "2:lock=1", "barrier", "1:die=9", "0:lock=1", "0:code=" + peer_dead, "0:test_lock=1",
                 "0:code=" + peer_dead, "0:put=2", "2:poll=7", "finalize"},
                {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0", "NPUSHMEM_ON_PEER_DEATH=survive"});
    EXPECT_EQ(status, 128 + 9) << report;
    EXPECT_THAT(report,
                AllOf(HasSubstr("PE 1, whose memory has the lock, is dead, so PE 2 on another host cannot release it"),
                      Not(HasSubstr("rank "))));
}

// The signal of PE 0 in the last barrier fails, and no PE is dead: PE 1, on the other host, waits for it.
TEST_P(RemoteTransport, FinalizeEndsForAllIfItFailsForOne) {
    const auto [status, report] = run_job({"-n", "2", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_scenario",
                                           "0:setenv=NPUSHMEM_FAULT_FAIL=atomic:2:system", "init", "finalize",
                                           "0:code=" + std::to_string(NPUSHMEM_E_SYSTEM), "1:code=0"},
                                          {"NPUSHMEM_REMOTE_TRANSPORT=fault(" + GetParam() + ")", "NPUSHMEM_INFO=0",
                                           "NPUSHMEM_TIMEOUT=60s", "NPUSHMEM_ON_PEER_DEATH=survive"});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, AllOf(HasSubstr("finalize"), Not(HasSubstr("timed out")), Not(HasSubstr("rank "))));
}

// Where the program has put nothing, a barrier asks no transport for completion of the signals of earlier barriers and
// collectives.
TEST_P(RemoteTransport, NoQuietWaitsForTheSignalsOfBarriers) {
    const auto [status, report] =
        run_job({"-n", "4", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_scenario", "init", "barrier", "sum",
                 "barrier", "sync", "barrier", "code=0", "finalize", "code=0"},
                {"NPUSHMEM_REMOTE_TRANSPORT=fault(" + GetParam() + ")", "NPUSHMEM_FAULT_FAIL=quiet:1:system",
                 "NPUSHMEM_INFO=0", "NPUSHMEM_TIMEOUT=60s"});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, Not(HasSubstr("rank ")));
}

bool has_stopped(int process) {
    std::string text;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), text);
    const auto stat = parse_process_stat(text);
    return stat && stat->state == 'T';
}

// PE 3 has stopped when PE 0 puts to it, and then dies: the quiet of PE 0 fails, and the others wait for PE 0.
TEST_P(RemoteTransport, ADeadPeOutsideATeamDoesNotBlockItsBarriers) {
    const std::string dead = std::to_string(NPUSHMEM_E_PEER_DEAD);
    const std::string stop = "die=" + std::to_string(SIGSTOP);
    for (const char* barrier : {"team_barrier", "set_barrier=3"}) {
        run::JobUnderTest job({"-n", "4", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_scenario", "init",
                               "calloc=512", "split=3", "barrier", "3:report=up", "3:" + stop, "0:report=up",
                               "0:" + stop, "0:put=3", "0:report=put", barrier, "0:code=" + dead, "code=0", "finalize"},
                              settings_with({"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0",
                                             "NPUSHMEM_TIMEOUT=60s", "NPUSHMEM_ON_PEER_DEATH=survive"}));
        std::map<int, int> processes;
        for (const run::Report& report : job.reports(2)) processes[report.pe] = report.pid;
        for (const auto& [pe, process] : processes)
            EXPECT_TRUE(run::eventually([process = process] { return has_stopped(process); })) << "PE " << pe;
        kill(processes.at(0), SIGCONT);
        EXPECT_EQ(job.reports(1).size(), 1U);
        kill(processes.at(3), SIGKILL);
        EXPECT_EQ(job.end(), 128 + SIGKILL) << job.errors();
        EXPECT_THAT(job.errors(), AllOf(Not(HasSubstr("timed out")), Not(HasSubstr("rank ")))) << barrier;
    }
}

TEST_P(RemoteTransport, ReportsAPeThatExitsInAHandlerThatInterruptsACall) {
    const auto [status, report] =
        run_job({"-n", "3", "--nodes", "3", std::string(API_TEST_FOLDER) + "/api_openshmem_mistakes", "interrupt"},
                {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, AllOf(HasSubstr("PE 2"), Not(HasSubstr("shmem_finalize"))));
}

TEST_P(RemoteTransport, KernelsReachOtherHostsInBothModes) {
    const std::pair<const char*, const char*> ways[] = {{"0", "by a proxy thread"}, {"1", "direct"}};
    for (const auto& [ibgda, way] : ways) {
        const auto [status, report] =
            run_job({"-n", "2", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_streams"},
                    {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_IB_ENABLE_IBGDA=" + std::string(ibgda)});
        EXPECT_EQ(status, 0) << report;
        EXPECT_THAT(report, HasSubstr(std::string("kernels: ") + way + " to PEs that are not mapped"));
    }
}

// A PE reaches itself, its host and another host by three different transports, or by two.
TEST_P(RemoteTransport, ServesBesideAnUnmappedSelf) {
    for (const std::string& selection : unmapped_self_selections()) {
        const auto [status, report] = run_job(
            {"-n", "3", "--map-by", "round-robin", "--nodes", "2", std::string(API_TEST_FOLDER) + "/api_streams"},
            {"NPUSHMEM_TRANSPORTS=" + selection, "NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=0"});
        EXPECT_EQ(status, 0) << selection << ": " << report;
    }
}

TEST_P(RemoteTransport, AutoSelectsItAndReportsIt) {
    const auto [status, report] =
        run_rma({"NPUSHMEM_REMOTE_TRANSPORT=auto", "NPUSHMEM_REMOTE_ORDER=nosuch," + GetParam()});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report,
                AllOf(HasSubstr("between hosts: " + GetParam() + " (NPUSHMEM_REMOTE_TRANSPORT=auto; not nosuch: "),
                      HasSubstr("pe 1: " + GetParam() + " (")));
}

TEST_P(RemoteTransport, AutoOpensNoneInAJobOfOneHost) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=auto"}, "1");
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, Not(HasSubstr(GetParam())));
}

TEST_P(RemoteTransport, AnInterfaceThatDoesNotExistIsNamed) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_TCP_IFNAME=nosuch0",
                                           "NPUSHMEM_LIBFABRIC_DOMAIN=nosuch0", "NPUSHMEM_UCX_NET_DEVICES=nosuch0"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, HasSubstr("'nosuch0'"));
}

std::string name_of_transport(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

// Without an RDMA device, tcp is the first of the default order that opens.
TEST(RemoteTransportByDefault, IsTcpWithoutALibrary) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=auto", "NPUSHMEM_HCA_LIST=nosuch0"});
    EXPECT_EQ(status, 0) << report;
    EXPECT_THAT(report, AllOf(HasSubstr("between hosts: tcp"), Not(HasSubstr("ucx")), Not(HasSubstr("libfabric"))));
}

INSTANTIATE_TEST_SUITE_P(Tcp, RemoteTransport, ::testing::Values("tcp"), name_of_transport);

#ifdef API_TEST_LIBFABRIC  // the plugin was built
INSTANTIATE_TEST_SUITE_P(Libfabric, RemoteTransport, ::testing::Values("libfabric"), name_of_transport);

TEST(RemoteTransportLibfabric, AProviderThatDoesNotExistIsNamed) {
    const auto [status, report] =
        run_rma({"NPUSHMEM_REMOTE_TRANSPORT=libfabric", "NPUSHMEM_LIBFABRIC_PROVIDER=nosuch"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, HasSubstr("NPUSHMEM_LIBFABRIC_PROVIDER='nosuch': not available on this host"));
}
#endif

#ifdef API_TEST_UCX
INSTANTIATE_TEST_SUITE_P(Ucx, RemoteTransport, ::testing::Values("ucx"), name_of_transport);
#endif

#ifdef API_TEST_VERBS
// With devices: tests/integration/rdma-guest.
bool has_rdma_devices() {
    std::error_code failed;
    const std::filesystem::directory_iterator devices("/sys/class/infiniband", failed);
    return !failed && devices != std::filesystem::directory_iterator();
}

TEST(RemoteTransportVerbs, ReportsAMachineWithoutDevices) {
    if (has_rdma_devices()) GTEST_SKIP() << "this machine has RDMA devices";
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=verbs"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, AllOf(HasSubstr("transport verbs: "), HasSubstr("RDMA device")));
}

TEST(RemoteTransportVerbs, AVariableThatIsWrongIsNamed) {
    const auto [status, report] = run_rma({"NPUSHMEM_REMOTE_TRANSPORT=verbs", "NPUSHMEM_IB_MTU=1500"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(report, HasSubstr("NPUSHMEM_IB_MTU: 1500 is invalid; expected one of: 0, 256"));
}
#endif

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RemoteTransport);

}  // namespace
}  // namespace npushmem::api_test
