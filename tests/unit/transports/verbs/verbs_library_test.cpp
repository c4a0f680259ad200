// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_library.hpp"

#include <gmock/gmock.h>

namespace npushmem::verbs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LoadedVerbsLibrary, AMissingLibraryIsReportedWithItsPackages) {
    const auto absent = load_library("libno_such_verbs.so.1");
    ASSERT_FALSE(absent.ok());
    EXPECT_EQ(absent.status().code(), Code::unreachable);
    EXPECT_THAT(absent.status().message(), AllOf(HasSubstr("libno_such_verbs.so.1"), HasSubstr("libibverbs1")));
}

TEST(LoadedVerbsLibrary, ALibraryWithoutAFunctionIsNamed) {
    EXPECT_THAT(load_library("libm.so.6").status().message(),
                AllOf(HasSubstr("libm.so.6 is too old"), HasSubstr("ibv_get_device_list")));
}

}  // namespace
}  // namespace npushmem::verbs
