#include "topology/cpu.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

TEST(DescribeCpus, JoinsRuns) {
    EXPECT_EQ(describe(CpuSet{0, 1, 2, 3, 8}), "0-3,8");
    EXPECT_EQ(describe(CpuSet{5}), "5");
    EXPECT_EQ(describe(CpuSet{0, 2, 4}), "0,2,4");
    EXPECT_EQ(describe(CpuSet{}), "none");
}

}  // namespace
}  // namespace npushmem::topology
