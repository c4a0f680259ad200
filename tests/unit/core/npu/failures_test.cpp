// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/source_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(SourceLine, NamesTheFileAndTheLineOfAKernel) {
    const auto here = SourceLocation::current();
    EXPECT_THAT(text_of(here), EndsWith("failures_test.cpp:" + std::to_string(here.line())));
    EXPECT_EQ(text_of({}), "the library");
}

// Operations in stream order have no source line in the program, and the library's own lines would not help the user.
TEST(SourceLine, StreamOperationsDoNotNameLibraryFiles) {
    fakes::SymmetricArray array(2, sizeof(BarrierState));
    const fakes::ArrayPe pe(array, 0, {.wait_timeout = std::chrono::milliseconds(3)});
    auto* state = array.at<BarrierState>(0);
    for (const TeamView& team : {TeamView{0, 1, 2}, TeamView{1, 1, 1}}) {
        EXPECT_TRUE(barrier_on_device(pe.stream(), team, state).ok());
        const Status status = pe.stream().synchronize();
        EXPECT_FALSE(status.ok());
        EXPECT_THAT(status.message(), HasSubstr("kernel 'barrier', on PE 0"));
        EXPECT_THAT(status.message(), Not(HasSubstr(".cpp")));
    }
}

}  // namespace
}  // namespace npushmem::npu
