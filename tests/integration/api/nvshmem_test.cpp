// SPDX-License-Identifier: BSD-3-Clause
// Small programs of NVSHMEM, compiled with its header names, over mapped memory and over transports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

struct NvshmemJob {
    const char* program;
    int pes;
    std::vector<std::string> environment;
    int hosts = 1;  // emulated ones
};

void PrintTo(const NvshmemJob& job, std::ostream* out) {
    *out << job.program << " with " << job.pes << " PEs on " << job.hosts << " hosts";
    for (const std::string& text : job.environment) *out << " " << text;
}

std::vector<NvshmemJob> nvshmem_jobs() {
    std::vector<NvshmemJob> jobs;
    for (const char* program : {"ring", "teams"})
        for (const int pes : {2, 3, 4})
            for (const char* transports : {"self,p2p", "self,nomap(p2p)", "hccs"})
                jobs.push_back({program, pes, {std::string("NPUSHMEM_TRANSPORTS=") + transports}});
    for (const char* transports : {"self,p2p", "self,nomap(p2p)", "hccs"})
        for (const char* program : {"cross", "habits"})
            jobs.push_back({program, 2, {std::string("NPUSHMEM_TRANSPORTS=") + transports}});
    jobs.push_back({"ring", 1, {}});
    jobs.push_back({"teams", 4, {"NPUSHMEM_CHECK=1"}});
    return jobs;
}

// Two PEs are on each host, so some are mapped and some are not.
std::vector<NvshmemJob> nvshmem_jobs_over(const std::string& network) {
    std::vector<NvshmemJob> jobs;
    for (const char* program : {"ring", "teams", "cross", "habits"})
        jobs.push_back({program,
                        4,
                        {"NPUSHMEM_REMOTE_TRANSPORT=" + network, "NPUSHMEM_TCP_IFNAME=lo",
                         "NPUSHMEM_LIBFABRIC_DOMAIN=lo", "NPUSHMEM_UCX_NET_DEVICES=lo", "NPUSHMEM_TCP_PEER_TIMEOUT=0",
                         "NPUSHMEM_LIBFABRIC_PEER_TIMEOUT=0", "NPUSHMEM_UCX_PEER_TIMEOUT=0"},
                        2});
    return jobs;
}

class NvshmemPrograms : public ::testing::TestWithParam<NvshmemJob> {};

// The exit status and the output of the program of NVSHMEM whose start fails in this way.
std::pair<int, std::string> failed_start(const std::string& how, const std::string& variable) {
    run::JobSettings settings;
    settings.environment = {"NPUSHMEM_TRANSPORTS=nosuch", variable};
    run::JobUnderTest job({"-n", "1", std::string(API_TEST_FOLDER) + "/nvshmem_habits", how}, settings);
    const int status = job.end();
    EXPECT_THAT(job.errors(), testing::HasSubstr(how == "hostlib" ? "flags 0x1: expected 0 or one of" : "npushmem"))
        << how;
    return {status, job.output()};
}

// A start that fails ends the process, as in NVSHMEM, unless the program or the user asks for the code.
TEST(NvshmemStart, EndsTheProcessIfItFails) {
    for (const char* how : {"init", "init_thread", "init_attr"}) {
        EXPECT_EQ(failed_start(how, "NPUSHMEM_ON_ERROR=job"), std::make_pair(1, std::string())) << how;
        EXPECT_THAT(failed_start(how, "NPUSHMEM_ON_ERROR=report").second, testing::HasSubstr("went on with status 0"))
            << how;
    }
    EXPECT_EQ(failed_start("hostlib", "NPUSHMEM_ON_ERROR=job").second, "went on with status 0 and code below 0\n");
}

TEST_P(NvshmemPrograms, Run) {
    const NvshmemJob& nvshmem = GetParam();
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = nvshmem.environment;
    settings.environment.emplace_back("NPUSHMEM_SYMMETRIC_SIZE=16M");
    settings.environment.emplace_back("NPUSHMEM_TIMEOUT=60");
    const std::string program = std::string(API_TEST_FOLDER) + "/nvshmem_" + nvshmem.program;
    run::JobUnderTest job({"-n", std::to_string(nvshmem.pes), "--nodes", std::to_string(nvshmem.hosts), program},
                          settings);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_EQ(job.errors(), "");
}

INSTANTIATE_TEST_SUITE_P(Api, NvshmemPrograms, ::testing::ValuesIn(nvshmem_jobs()));
INSTANTIATE_TEST_SUITE_P(OverTcp, NvshmemPrograms, ::testing::ValuesIn(nvshmem_jobs_over("tcp")));
#ifdef API_TEST_LIBFABRIC  // the plugin was built
INSTANTIATE_TEST_SUITE_P(RemoteTransportLibfabric, NvshmemPrograms,
                         ::testing::ValuesIn(nvshmem_jobs_over("libfabric")));
#endif
#ifdef API_TEST_UCX
INSTANTIATE_TEST_SUITE_P(RemoteTransportUcx, NvshmemPrograms, ::testing::ValuesIn(nvshmem_jobs_over("ucx")));
#endif

}  // namespace
}  // namespace npushmem::api_test
