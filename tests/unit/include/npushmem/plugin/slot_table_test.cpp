// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/slot_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace npushmem {
namespace {

TEST(SlotTable, FindsWhatWasInsertedUntilItIsRemoved) {
    SlotTable<int> table;
    const std::uint64_t seven = table.insert(7);
    const std::uint64_t eight = table.insert(8);
    EXPECT_NE(seven, 0U);
    EXPECT_NE(seven, eight);
    EXPECT_EQ(*table.find(seven), 7);
    EXPECT_EQ(table.remove(seven), 7);
    EXPECT_EQ(table.find(seven), nullptr);
    EXPECT_EQ(table.remove(seven), std::nullopt);
    EXPECT_EQ(*table.find(eight), 8);
    EXPECT_EQ(table.count(), 1U);
}

TEST(SlotTable, RecognisesStaleNumbersOfAReusedSlot) {
    SlotTable<int> table;
    const std::uint64_t old = table.insert(1);
    (void)table.remove(old);
    const std::uint64_t young = table.insert(2);
    EXPECT_EQ(old & 0xffffffffU, young & 0xffffffffU) << "the slot was not reused: the test shows nothing";
    EXPECT_EQ(table.find(old), nullptr);
    EXPECT_EQ(*table.find(young), 2);
}

TEST(SlotTable, FindsNothingForUnknownNumbers) {
    SlotTable<int> table;
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31, ~std::uint64_t{0}})
        EXPECT_EQ(table.find(number), nullptr) << number;
}

TEST(SlotTable, KeepsObjectsInPlaceWhileItGrows) {
    SlotTable<int> table;
    const std::uint64_t first = table.insert(-1);
    const int* place = table.find(first);
    std::set<std::uint64_t> numbers{first};
    for (int i = 0; i < 5000; ++i) {
        const std::uint64_t number = table.insert(i);
        ASSERT_TRUE(numbers.insert(number).second);
        ASSERT_EQ(*table.find(number), i);
    }
    EXPECT_EQ(table.find(first), place);
    std::size_t visited = 0;
    table.for_each([&](std::uint64_t number, int) { visited += numbers.contains(number) ? 1 : 0; });
    EXPECT_EQ(visited, 5001U);
}

TEST(SlotTable, LooksUpWhileOthersInsertAndRemove) {
    SlotTable<std::uint64_t> table;
    const std::uint64_t constant = table.insert(99);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        while (!stop.load(std::memory_order_relaxed)) {  // only a request to end; publishes nothing
            std::vector<std::uint64_t> numbers;
            for (std::uint64_t i = 0; i < 100; ++i) numbers.push_back(table.insert(i));
            for (const auto number : numbers) (void)table.remove(number);
        }
    });
    for (int i = 0; i < 20000; ++i) ASSERT_EQ(*table.find(constant), 99U);
    stop.store(true, std::memory_order_relaxed);
    writer.join();
}

}  // namespace
}  // namespace npushmem
