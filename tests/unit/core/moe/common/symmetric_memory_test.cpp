// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <array>

#include "core/moe/common/symmetric_memory.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MemoryExtent : public ::testing::Test {
protected:
    alignas(64) std::array<std::byte, 64> memory_{};
};

TEST_F(MemoryExtent, NullAndMisalignedAreRefused) {
    EXPECT_TRUE(check_address({"x", nullptr, Bytes{0}}, ElementSize{2}).ok());
    EXPECT_THAT(check_address({"x", nullptr, Bytes{8}}, ElementSize{2}).message(),
                AllOf(HasSubstr("x is null"), HasSubstr("8")));
    EXPECT_THAT(check_address({"out", memory_.data() + 2, Bytes{8}}, ElementSize{4}).message(),
                AllOf(HasSubstr("out"), HasSubstr("4-byte")));
    EXPECT_TRUE(check_address({"out", memory_.data() + 2, Bytes{8}}, ElementSize{2}).ok());
}

TEST_F(MemoryExtent, SharingOneByteIsRefusedTouchingIsNot) {
    const Extent a{"x", memory_.data(), Bytes{16}};
    EXPECT_TRUE(check_apart(a, {"out", memory_.data() + 16, Bytes{16}}).ok());
    EXPECT_TRUE(check_apart({"out", memory_.data() + 16, Bytes{16}}, a).ok());
    EXPECT_TRUE(check_apart(a, {"out", memory_.data() + 4, Bytes{0}}).ok());
    const Status status = check_apart(a, {"out", memory_.data() + 15, Bytes{1}});
    EXPECT_EQ(status.code(), Code::argument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("x (16 bytes"), HasSubstr("out (1 bytes")));
    EXPECT_FALSE(check_apart({"out", memory_.data() + 15, Bytes{1}}, a).ok());
}

}  // namespace

}  // namespace npushmem::moe
