// SPDX-License-Identifier: BSD-3-Clause
// Small programs of NVSHMEM, compiled with its header names, over mapped memory and over transports.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

struct NvshmemJob {
    const char* program;
    int pes;
    std::vector<std::string> environment;
};

void PrintTo(const NvshmemJob& job, std::ostream* out) {
    *out << job.program << " with " << job.pes << " PEs";
    for (const std::string& text : job.environment) *out << " " << text;
}

std::vector<NvshmemJob> nvshmem_jobs() {
    std::vector<NvshmemJob> jobs;
    for (const char* program : {"ring", "teams"})
        for (const int pes : {2, 3, 4})
            for (const char* transports : {"self,p2p", "self,nomap(p2p)", "hccs"})
                jobs.push_back({program, pes, {std::string("NPUSHMEM_TRANSPORTS=") + transports}});
    jobs.push_back({"ring", 1, {}});
    jobs.push_back({"teams", 4, {"NPUSHMEM_CHECK=1"}});
    return jobs;
}

class NvshmemPrograms : public ::testing::TestWithParam<NvshmemJob> {};

TEST_P(NvshmemPrograms, Run) {
    const NvshmemJob& nvshmem = GetParam();
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = nvshmem.environment;
    settings.environment.emplace_back("NPUSHMEM_SYMMETRIC_SIZE=16M");
    const std::string program = std::string(API_TEST_FOLDER) + "/nvshmem_" + nvshmem.program;
    run::JobUnderTest job({"-n", std::to_string(nvshmem.pes), program}, settings);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_EQ(job.errors(), "");
}

INSTANTIATE_TEST_SUITE_P(Api, NvshmemPrograms, ::testing::ValuesIn(nvshmem_jobs()));

}  // namespace
}  // namespace npushmem::api_test
