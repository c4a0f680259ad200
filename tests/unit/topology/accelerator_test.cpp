#include "topology/accelerator.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

TEST(IsAccelerator, GoesByClassThenVendor) {
    EXPECT_TRUE(is_accelerator(0x1200, 0x1234));
    EXPECT_TRUE(is_accelerator(0x0302, 0x10de));
    EXPECT_FALSE(is_accelerator(0x0302, 0x1234));
    EXPECT_FALSE(is_accelerator(0x0200, 0x10de));
}

}  // namespace
}  // namespace npushmem::topology
