#include "core/memory/symmetric_heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

namespace npushmem {
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

TEST_F(SymmetricHeapTest, CommitsWhatIsAllocatedAndNoMore) {
    const std::uint64_t before = heap->committed_bytes();
    const std::uint64_t offset = must_allocate(3 * mib);
    std::memset(heap->at(offset), 0x5a, 3 * mib);
    EXPECT_GE(heap->committed_bytes(), before + 3 * mib - CommitMap::unit);
    EXPECT_LE(heap->committed_bytes(), before + 3 * mib + 2 * CommitMap::unit);
}

TEST_F(SymmetricHeapTest, KeepsALittleOfWhatIsFreedForTheNextObject) {
    const std::uint64_t offset = must_allocate(4 * mib);
    const std::uint64_t with_object = heap->committed_bytes();
    ASSERT_TRUE(heap->free(offset).ok());
    EXPECT_EQ(heap->committed_bytes(), with_object);
    EXPECT_EQ(must_allocate(4 * mib), offset);
    EXPECT_EQ(heap->committed_bytes(), with_object);
}

TEST_F(SymmetricHeapTest, GivesBackWhatIsMuch) {
    const std::uint64_t before = heap->committed_bytes();
    const std::uint64_t large = must_allocate(40 * mib);
    ASSERT_TRUE(heap->free(large).ok());
    EXPECT_LE(heap->committed_bytes(), before + 2 * CommitMap::unit);
    // Committed again when it is used again, and fresh.
    const std::uint64_t again = must_allocate(40 * mib);
    EXPECT_EQ(again, large);
    EXPECT_EQ(*heap->at(again + 20 * mib), std::byte{0});
}

TEST_F(SymmetricHeapTest, KeepsEverythingWhereANicKnowsThePages) {
    heap->retain_pages();
    const std::uint64_t large = must_allocate(40 * mib);
    const std::uint64_t with_object = heap->committed_bytes();
    *heap->at(large + 20 * mib) = std::byte{7};
    ASSERT_TRUE(heap->free(large).ok());
    EXPECT_EQ(heap->committed_bytes(), with_object);
    EXPECT_EQ(*heap->at(large + 20 * mib), std::byte{7}) << "the same page";
}

TEST_F(SymmetricHeapTest, ManyObjectsKeepNoMoreThanOneWould) {
    std::vector<std::uint64_t> offsets;
    for (int i = 0; i < 12; ++i) offsets.push_back(must_allocate(4 * mib));
    const std::uint64_t used = heap->statistics().used;
    for (const std::uint64_t offset : offsets) ASSERT_TRUE(heap->free(offset).ok());
    EXPECT_LE(heap->committed_bytes(), used - 48 * mib + 17 * mib);
}

TEST_F(SymmetricHeapTest, RefusesAlignmentsThatTheSliceDoesNotHave) {
    const auto refused = heap->allocate(64, 2 * HostMemory::slice_alignment(heap->bytes()));
    EXPECT_EQ(refused.status().code(), Code::argument);
    EXPECT_NE(refused.status().message().find("exceeds the largest supported"), std::string::npos);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(heap->at(must_allocate(64, mib))) % mib, 0U);
}

TEST_F(SymmetricHeapTest, ResizesInPlaceWhenWhatFollowsIsFree) {
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

TEST_F(SymmetricHeapTest, TellsOffsetsFromPointers) {
    const std::uint64_t offset = must_allocate(64);
    EXPECT_EQ(heap->offset_of(heap->at(offset)).value(), offset);
    const int elsewhere = 0;
    EXPECT_EQ(heap->offset_of(&elsewhere).status().code(), Code::not_symmetric);
}

}  // namespace
}  // namespace npushmem
