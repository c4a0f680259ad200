#include "transports/shared/process_start_time.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace npushmem::shared_memory {
namespace {

TEST(StartTime, IsField22WhateverTheNameHolds) {
    const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
    EXPECT_EQ(start_time_in("42 (name)" + rest), 4711U);
    EXPECT_EQ(start_time_in("42 (a b) c) (d)" + rest), 4711U);
    EXPECT_EQ(start_time_in("42 (name) S 1 2"), 0U);
    EXPECT_EQ(start_time_in(""), 0U);
}

TEST(StartTime, OfThisProcessAndOfNone) {
    const auto own = start_time_of(::getpid());
    ASSERT_TRUE(own.ok());
    EXPECT_GT(own.value(), 0U);
    EXPECT_EQ(start_time_of(::getpid()).value(), own.value());
    EXPECT_EQ(start_time_of(-5).status().code(), Code::peer_dead);
}

}  // namespace
}  // namespace npushmem::shared_memory
