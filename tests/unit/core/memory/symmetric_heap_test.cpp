// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "core/memory/symmetric_heap.hpp"
#include "tests/fakes/low_file_limit.hpp"

namespace npushmem {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Committed = CommitMap::Range;
constexpr std::uint64_t commit_unit = CommitMap::unit;

TEST(CommitMap, ReturnsUncommittedUnits) {
    CommitMap map(10 * commit_unit);
    EXPECT_THAT(map.missing(10, 20), ElementsAre(Committed{0, commit_unit}));
    map.mark({commit_unit, 2 * commit_unit}, true);
    EXPECT_THAT(map.missing(0, 5 * commit_unit),
                ElementsAre(Committed{0, commit_unit}, Committed{3 * commit_unit, 2 * commit_unit}));
    EXPECT_THAT(map.missing(commit_unit + 1, commit_unit), IsEmpty());
    EXPECT_THAT(map.missing(10, 0), IsEmpty());
    EXPECT_EQ(map.committed_bytes(), 2 * commit_unit);
}

TEST(CommitMap, ARangeAcrossABorderNeedsBothUnits) {
    CommitMap map(10 * commit_unit);
    EXPECT_THAT(map.missing(commit_unit - 1, 2), ElementsAre(Committed{0, 2 * commit_unit}));
}

TEST(CommitMap, ReleasesOnlyWholeUnitsInside) {
    EXPECT_EQ(CommitMap::inside(1, 3 * commit_unit), (Committed{commit_unit, 2 * commit_unit}));
    EXPECT_EQ(CommitMap::inside(0, 3 * commit_unit), (Committed{0, 3 * commit_unit}));
    EXPECT_EQ(CommitMap::inside(1, commit_unit).bytes, 0U);
}

}  // namespace

namespace {

using ::testing::HasSubstr;

struct AllocationTrackerTest : ::testing::Test {
    AllocationTracker tracker;
    void expect(std::uint64_t offset, std::uint64_t bytes, Code code, const char* word) {
        const Status status = tracker.check(offset, bytes);
        EXPECT_EQ(status.code(), code) << status.message();
        EXPECT_THAT(status.message(), HasSubstr(word));
    }
};

TEST_F(AllocationTrackerTest, AcceptsRangesInsideOneObject) {
    tracker.add(128, 64);
    tracker.add(192, 10);
    expect(128, 64, Code::ok, "");
    expect(191, 1, Code::ok, "");
    expect(192, 10, Code::ok, "");
    expect(128, 65, Code::range, "1 bytes beyond the object of 64 bytes");
    expect(150, 1000, Code::range, "reach 958 bytes beyond");
    expect(202, 1, Code::argument, "in no object");
    expect(0, 1, Code::argument, "in no object");
}

TEST_F(AllocationTrackerTest, ReportsFreedRangesUntilTheyAreReused) {
    tracker.add(0, 64);
    tracker.add(64, 64);
    tracker.add(128, 64);
    tracker.remove(0);
    tracker.remove(64);
    tracker.remove(128);
    tracker.remove(4096);  // never there
    expect(70, 8, Code::argument, "in an object of 64 bytes that has been freed");
    tracker.add(32, 64);  // over the first two
    expect(70, 8, Code::ok, "");
    expect(10, 8, Code::argument, "in no object");
    expect(130, 8, Code::argument, "has been freed");
    tracker.add(32, 128);  // has grown
    expect(130, 8, Code::ok, "");
}

}  // namespace

namespace {

constexpr std::uint64_t mib = 1ULL << 20;

class SymmetricHeapTest : public ::testing::Test {
protected:
    SymmetricHeapTest() {
        auto made = HostMemory::create(SymmetricHeap::slice_bytes(64 * mib), 1, "");
        EXPECT_TRUE(made.ok()) << made.status().message();
        memory.emplace(std::move(made).value());
        auto created = SymmetricHeap::create(*memory, 0, SymmetricHeap::slice_bytes(64 * mib));
        EXPECT_TRUE(created.ok()) << created.status().message();
        heap.emplace(std::move(created).value());
    }

    std::uint64_t must_allocate(std::uint64_t bytes, std::uint64_t alignment = 64) {
        auto offset = heap->allocate(bytes, alignment);
        EXPECT_TRUE(offset.ok()) << offset.status().message();
        return offset.value();
    }

    std::optional<HostMemory> memory;
    std::optional<SymmetricHeap> heap;
};

TEST_F(SymmetricHeapTest, CommitsOnlyAllocatedMemory) {
    const std::uint64_t before = heap->committed_bytes();
    const std::uint64_t offset = must_allocate(3 * mib);
    std::memset(heap->at(offset), 0x5a, 3 * mib);
    EXPECT_GE(heap->committed_bytes(), before + 3 * mib - CommitMap::unit);
    EXPECT_LE(heap->committed_bytes(), before + 3 * mib + 2 * CommitMap::unit);
}

TEST_F(SymmetricHeapTest, RetainsFreedMemoryUpToALimit) {
    const std::uint64_t offset = must_allocate(4 * mib);
    const std::uint64_t with_object = heap->committed_bytes();
    ASSERT_TRUE(heap->free(offset).ok());
    EXPECT_EQ(heap->committed_bytes(), with_object);
    EXPECT_EQ(must_allocate(4 * mib), offset);
    EXPECT_EQ(heap->committed_bytes(), with_object);
}

TEST_F(SymmetricHeapTest, ReturnsLargeFreedMemory) {
    const std::uint64_t before = heap->committed_bytes();
    const std::uint64_t large = must_allocate(40 * mib);
    ASSERT_TRUE(heap->free(large).ok());
    EXPECT_LE(heap->committed_bytes(), before + 2 * CommitMap::unit);
    // Committed again when it is used again, and fresh.
    const std::uint64_t again = must_allocate(40 * mib);
    EXPECT_EQ(again, large);
    EXPECT_EQ(*heap->at(again + 20 * mib), std::byte{0});
}

TEST(SymmetricHeapWithoutRoom, KeepsItsControlBlockWhenTheFirstObjectDoesNotFit) {
    constexpr std::uint64_t heap_bytes = 256 * mib;
    auto memory = HostMemory::create(SymmetricHeap::slice_bytes(heap_bytes), 1, "");
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    auto heap = SymmetricHeap::create(memory.value(), 0, SymmetricHeap::slice_bytes(heap_bytes));
    ASSERT_TRUE(heap.ok()) << heap.status().message();
    heap.value().control().magic = 42;
    // The first pieces of 64 MiB fit, later ones do not.
    ASSERT_EQ(::ftruncate(memory.value().descriptor(), heap_bytes / 2), 0);
    LowFileLimit limit(heap_bytes / 2);
    const auto refused = heap.value().allocate(heap_bytes - mib, 64);
    limit.lift();
    EXPECT_THAT(refused.status().message(), HasSubstr("cannot commit"));
    EXPECT_EQ(heap.value().control().magic, 42U);
}

TEST_F(SymmetricHeapTest, AllocatesAddressesWithoutMemory) {
    const std::uint64_t before = heap->committed_bytes();
    const auto addresses = heap->allocate(32 * mib, 4096, 0);
    ASSERT_TRUE(addresses.ok()) << addresses.status().message();
    EXPECT_EQ(heap->committed_bytes(), before);
    // They do not change which memory the heap retains.
    const std::uint64_t small = must_allocate(4 * mib);
    const std::uint64_t large = must_allocate(20 * mib);
    const std::uint64_t with_objects = heap->committed_bytes();
    ASSERT_TRUE(heap->free(small).ok());
    EXPECT_EQ(heap->committed_bytes(), with_objects);
    ASSERT_TRUE(heap->free(large).ok());
    EXPECT_LE(heap->committed_bytes(), with_objects - 20 * mib + 2 * CommitMap::unit);
    ASSERT_TRUE(heap->free(addresses.value()).ok());
    EXPECT_EQ(must_allocate(40 * mib), addresses.value()) << "usable after all";
    std::memset(heap->at(addresses.value()), 1, 40 * mib);
}

TEST_F(SymmetricHeapTest, KeepsFreedMemoryWithRetainedPages) {
    heap->retain_pages();
    const std::uint64_t large = must_allocate(40 * mib);
    const std::uint64_t with_object = heap->committed_bytes();
    *heap->at(large + 20 * mib) = std::byte{7};
    ASSERT_TRUE(heap->free(large).ok());
    EXPECT_EQ(heap->committed_bytes(), with_object);
    EXPECT_EQ(*heap->at(large + 20 * mib), std::byte{7}) << "the same page";
}

TEST_F(SymmetricHeapTest, RetainsNoMoreForManyObjectsThanForOne) {
    std::vector<std::uint64_t> offsets;
    for (int i = 0; i < 12; ++i) offsets.push_back(must_allocate(4 * mib));
    const std::uint64_t used = heap->statistics().used;
    for (const std::uint64_t offset : offsets) ASSERT_TRUE(heap->free(offset).ok());
    EXPECT_LE(heap->committed_bytes(), used - 48 * mib + 17 * mib);
}

TEST_F(SymmetricHeapTest, LeavesGapsBehindObjects) {
    heap->track_allocations();
    heap->leave_gaps();
    const std::uint64_t first = must_allocate(64);
    const std::uint64_t second = must_allocate(64);
    EXPECT_EQ(second, first + 128);
    EXPECT_FALSE(heap->allocation_tracker()->check(first + 64, 8).ok());
    EXPECT_EQ(heap->size_of(first).value(), 64U);
    EXPECT_FALSE(heap->resize(first, 65).value()) << "the gap remains";
    EXPECT_TRUE(heap->resize(second, 200).value());
    EXPECT_EQ(heap->size_of(second).value(), 200U);
    EXPECT_TRUE(heap->allocation_tracker()->check(second, 200).ok());
    EXPECT_FALSE(heap->allocation_tracker()->check(second, 201).ok());
    ASSERT_TRUE(heap->free(first).ok());
    ASSERT_TRUE(heap->free(second).ok());
    EXPECT_EQ(must_allocate(64), first);
    EXPECT_FALSE(heap->allocate(0, 64).ok());
}

TEST_F(SymmetricHeapTest, RejectsAlignmentsAboveThatOfTheSlice) {
    const auto refused = heap->allocate(64, 2 * HostMemory::slice_alignment(heap->bytes()));
    EXPECT_EQ(refused.status().code(), Code::argument);
    EXPECT_NE(refused.status().message().find("exceeds the largest supported"), std::string::npos);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(heap->at(must_allocate(64, mib))) % mib, 0U);
}

TEST_F(SymmetricHeapTest, ResizesInPlaceIfTheMemoryBehindIsFree) {
    const std::uint64_t offset = must_allocate(mib);
    auto grown = heap->resize(offset, 2 * mib);
    ASSERT_TRUE(grown.ok() && grown.value());
    std::memset(heap->at(offset), 1, 2 * mib);
    (void)must_allocate(64);
    grown = heap->resize(offset, 4 * mib);
    ASSERT_TRUE(grown.ok());
    EXPECT_FALSE(grown.value()) << "another object follows";
    EXPECT_EQ(heap->size_of(offset).value(), 2 * mib);
}

TEST_F(SymmetricHeapTest, ConvertsPointersToOffsets) {
    const std::uint64_t offset = must_allocate(64);
    EXPECT_EQ(heap->offset_of(heap->at(offset)).value(), offset);
    const int elsewhere = 0;
    EXPECT_EQ(heap->offset_of(&elsewhere).status().code(), Code::not_symmetric);
}

}  // namespace

}  // namespace npushmem
