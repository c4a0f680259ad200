// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/memory_failures.hpp"

#include <gmock/gmock.h>
#include <ucs/debug/log_def.h>

#include <string>

namespace npushmem::ucx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// As UCX's memory pool and its users report it.
void fail_to_allocate(int times) {
    for (int i = 0; i < times; ++i) {
        ucs_error("Failed to allocate memory pool (name=%s) chunk: %s", "receive", i == 0 ? "first" : "again");
        ucs_warn("tcp_ep %p: unable to get a buffer from %p memory pool", nullptr, nullptr);
    }
}

TEST(MemoryFailures, LastIfUcxReportsThemWithoutEnd) {
    MemoryFailures failures;
    const MemoryFailures::Counting counting(failures);
    fail_to_allocate(1);
    EXPECT_FALSE(failures.are_lasting());
    fail_to_allocate(MemoryFailures::limit / 2);
    EXPECT_TRUE(failures.are_lasting());
    failures.reset();
    EXPECT_FALSE(failures.are_lasting());
}

TEST(MemoryFailures, AreShownOnce) {
    MemoryFailures failures;
    const MemoryFailures::Counting counting(failures);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    fail_to_allocate(3);
    ucs_error("another error");
    ucs_log_flush();
    const std::string shown = ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(shown, HasSubstr("first"));
    EXPECT_THAT(shown, Not(HasSubstr("again")));
    EXPECT_THAT(shown, HasSubstr("another error"));
}

TEST(MemoryFailures, OfOtherUsersOfUcxDoNotCount) {
    MemoryFailures failures;
    { const MemoryFailures::Counting counting(failures); }
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    fail_to_allocate(MemoryFailures::limit);
    (void)::testing::internal::GetCapturedStdout();
    (void)::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(failures.are_lasting());
}

}  // namespace
}  // namespace npushmem::ucx
