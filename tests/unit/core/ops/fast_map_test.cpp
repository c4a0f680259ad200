#include "core/ops/fast_map.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace npushmem {
namespace {

// PEs 2, 3 and 4 are mapped, PE 3 is the own one; slices of 64 bytes lie 128 apart.
class FastMapTest : public ::testing::Test {
protected:
    FastMapTest() {
        map.heap = reinterpret_cast<std::uintptr_t>(own());
        map.heap_bytes = 64;
        map.peers = memory;
        map.stride = 128;
        map.first_pe = 2;
        map.mapped_pes = 3;
    }
    std::byte* own() { return memory + 128; }

    alignas(64) std::byte memory[384];
    FastMap map;
};

TEST_F(FastMapTest, ComputesThePeersCopy) {
    EXPECT_EQ(map.address(own() + 8, 2), memory + 8);
    EXPECT_EQ(map.address(own() + 8, 3), own() + 8);
    EXPECT_EQ(map.address(own(), 64, 4), memory + 256);
}

TEST_F(FastMapTest, RefusesPesThatAreNotMapped) {
    for (const int pe : {1, 5, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
        EXPECT_EQ(map.address(own(), pe), nullptr) << pe;
        EXPECT_EQ(map.address(own(), 8, pe), nullptr) << pe;
    }
}

TEST_F(FastMapTest, RefusesWhatIsNotWhollyInTheHeap) {
    EXPECT_EQ(map.address(own() - 1, 2), nullptr);
    EXPECT_EQ(map.address(own() + 64, 2), nullptr);
    EXPECT_EQ(map.address(nullptr, 2), nullptr);
    EXPECT_NE(map.address(own() + 56, 8, 2), nullptr);
    EXPECT_EQ(map.address(own() + 57, 8, 2), nullptr) << "the last bytes lie outside";
    EXPECT_EQ(map.address(own(), 65, 2), nullptr);
    EXPECT_EQ(map.address(own() + 8, std::numeric_limits<std::uint64_t>::max(), 2), nullptr) << "no wrap";
    EXPECT_EQ(map.address(own(), 0, 2), nullptr);
}

// The executable's variables, 16 bytes somewhere else, lie at offset 64 of each slice.
class FastMapOfVariables : public FastMapTest {
protected:
    FastMapOfVariables() {
        map.statics = reinterpret_cast<std::uintptr_t>(variables);
        map.statics_bytes = 16;
        map.statics_offset = 64;
    }
    alignas(16) std::byte variables[32];
};

TEST_F(FastMapOfVariables, ComputesThePeersCopy) {
    EXPECT_EQ(map.address(variables + 5, 2), memory + 64 + 5);
    EXPECT_EQ(map.address(variables, 16, 4), memory + 256 + 64);
    EXPECT_EQ(map.address(own() + 8, 8, 4), memory + 256 + 8) << "the heap stays where it was";
}

TEST_F(FastMapOfVariables, RefusesWhatIsNotWhollyInThem) {
    EXPECT_EQ(map.address(variables - 1, 2), nullptr);
    EXPECT_EQ(map.address(variables + 16, 2), nullptr);
    EXPECT_NE(map.address(variables + 8, 8, 2), nullptr);
    EXPECT_EQ(map.address(variables + 9, 8, 2), nullptr);
    EXPECT_EQ(map.address(variables, 17, 2), nullptr);
    EXPECT_EQ(map.address(variables, 0, 2), nullptr);
    EXPECT_EQ(map.address(variables + 1, std::numeric_limits<std::uint64_t>::max(), 2), nullptr) << "no wrap";
    EXPECT_EQ(map.address(variables, 1), nullptr) << "a PE that is not mapped";
    EXPECT_EQ(map.address(variables, 8, 5), nullptr);
}

TEST(FastMap, EmptyRefusesEverything) {
    const FastMap none;
    int value = 0;
    EXPECT_EQ(none.address(&value, 0), nullptr);
    EXPECT_EQ(none.address(&value, sizeof value, 0), nullptr);
    EXPECT_EQ(none.address(nullptr, sizeof value, 0), nullptr);
}

}  // namespace
}  // namespace npushmem
