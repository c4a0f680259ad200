// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/failures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace npushmem::api {

namespace {

TEST(OpenshmemNames, AreThoseOfFunctionsAndConstants) {
    EXPECT_EQ(to_openshmem_names("npushmem_long_put: PE 9 does not exist"), "shmem_long_put: PE 9 does not exist");
    EXPECT_EQ(to_openshmem_names("call npushmem_init first"), "call shmem_init first");
    EXPECT_EQ(to_openshmem_names("the team is NPUSHMEM_TEAM_INVALID"), "the team is SHMEM_TEAM_INVALID");
    EXPECT_EQ(to_openshmem_names("NPUSHMEM_SIGNAL_OP_SET, NPUSHMEM_CMP_EQ."), "SHMEM_SIGNAL_SET, SHMEM_CMP_EQ.");
    EXPECT_EQ(to_openshmem_names("npushmem_a npushmem_b"), "shmem_a shmem_b");
}

TEST(OpenshmemNames, DoNotReplaceOtherNames) {
    for (const char* text : {"it does not export npushmem_transport_entry_v1", "npushmem_bootstrap_entry_v1"})
        EXPECT_EQ(to_openshmem_names(text), text);
    for (const char* text : {"", "npushmemx_init_attr: no", "NPUSHMEM_TIMEOUT=1s", "npushmem-info -c", "libnpushmem.so",
                             "my_npushmem_put", "mynpushmem_put", "NPUSHMEM_TEAM", "/x/npushmem/y"})
        EXPECT_EQ(to_openshmem_names(text), text);
}

// Returns the lines that `log` writes for this many failures while nothing runs.
std::ptrdiff_t logged_lines(FailureLog& log, int failures, const Status& failure) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < failures; ++i) log.log(nullptr, failure);
    const std::string text = ::testing::internal::GetCapturedStderr();
    return std::count(text.begin(), text.end(), '\n');
}

TEST(FailureLog, LimitsTheLinesOfEachStart) {
    FailureLog log;
    const Status failure{Code::argument, "wrong"};
    EXPECT_EQ(logged_lines(log, 60, failure), 51) << "50 failures and the line about the limit";
    EXPECT_EQ(logged_lines(log, 1, failure), 0);
    log.record_start("pe 0/1");
    EXPECT_EQ(logged_lines(log, 2, failure), 2);
}

TEST(FailureLog, ReportsOnceThatNothingRunsAfterAFailedStart) {
    FailureLog log;
    const Status nothing_runs{Code::not_initialized, "the start failed"};
    EXPECT_EQ(logged_lines(log, 2, nothing_runs), 2);
    log.record_failed_start();
    EXPECT_TRUE(log.start_failed());
    EXPECT_EQ(logged_lines(log, 3, nothing_runs), 1);
    log.record_start("pe 0/1");
    EXPECT_EQ(logged_lines(log, 2, nothing_runs), 2);
}

}  // namespace

}  // namespace npushmem::api
