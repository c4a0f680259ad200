// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/out_of_memory.hpp"

#include <gtest/gtest.h>

namespace npushmem {
namespace {

TEST(OutOfMemory, PassesOnTheResultOfTheCall) {
    EXPECT_EQ(end_on_bad_alloc("npushmem_g", [] { return 7; }), 7);
    bool ran = false;
    end_on_bad_alloc("npushmem_p", [&ran] { ran = true; });
    EXPECT_TRUE(ran);
}

TEST(OutOfMemory, PassesOnOtherExceptions) {
    EXPECT_THROW(end_on_bad_alloc("npushmem_p", [] { throw 7; }), int);
}

TEST(OutOfMemoryDeathTest, AFailedAllocationEndsTheProcessAndNamesTheCall) {
    EXPECT_EXIT(end_on_bad_alloc("npushmem_putmem", [] { throw std::bad_alloc(); }), ::testing::ExitedWithCode(1),
                "^npushmem: npushmem_putmem: this process cannot allocate private memory");
}

}  // namespace
}  // namespace npushmem
