// SPDX-License-Identifier: BSD-3-Clause
// Children of PEs, over every transport within a host. network_test.cpp tests transports between hosts.
#include <gmock/gmock.h>

#include <cctype>
#include <string>

#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ForkedChildren : public ::testing::TestWithParam<const char*> {};

TEST_P(ForkedChildren, AreNoPesAndDisturbNone) {
    for (const char* pes : {"1", "3"}) {
        const Leftovers leftovers;
        run::JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = {"NPUSHMEM_TRANSPORTS=" + std::string(GetParam()), "NPUSHMEM_SYMMETRIC_SIZE=16M"};
        run::JobUnderTest job({"-n", pes, API_TEST_FOLDER "/api_forks"}, settings);
        EXPECT_EQ(job.end(), 0) << job.errors();
        EXPECT_THAT(job.errors(), AllOf(HasSubstr("npushmem_long_p: process "), HasSubstr("was made by fork")));
        EXPECT_EQ(leftovers.found(), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Api, ForkedChildren,
                         ::testing::Values("self,p2p", "self,nomap(p2p)", "hccs", "trace(p2p)", "fault(p2p)"),
                         [](const auto& parameter) {
                             std::string name = parameter.param;
                             for (char& letter : name)
                                 if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
                             return name;
                         });

}  // namespace
}  // namespace npushmem::api_test
