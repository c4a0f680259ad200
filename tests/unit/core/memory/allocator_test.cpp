// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "core/memory/allocator.hpp"

namespace npushmem::testing {

// A naive allocator: one byte-granule map, searched from the left. Slow and obviously right.

class AllocatorModel {
public:
    explicit AllocatorModel(std::uint64_t granules) : taken_(granules, false) {}

    // The lowest place for `count` granules at a multiple of `alignment` granules. `padded` searches first, like the
    // allocator, for a free range with room for the worst padding.
    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t count, std::uint64_t alignment) const {
        for (const std::uint64_t room : {count + alignment - 1, count}) {
            for (const Range& range : free_ranges()) {
                const std::uint64_t at = (range.offset + alignment - 1) / alignment * alignment;
                if (range.size >= room && at + count <= range.end()) return at;
            }
        }
        return std::nullopt;
    }

    void mark(std::uint64_t at, std::uint64_t count, bool taken) {
        std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(at), count, taken);
    }

    [[nodiscard]] bool all_free(std::uint64_t at, std::uint64_t count) const {
        if (at + count > taken_.size()) return false;
        const auto begin = taken_.begin() + static_cast<std::ptrdiff_t>(at);
        return std::none_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](bool taken) { return taken; });
    }

    // Maximal runs of free granules.
    [[nodiscard]] std::vector<Range> free_ranges() const {
        std::vector<Range> out;
        for (std::uint64_t i = 0; i < taken_.size(); ++i) {
            if (taken_[i]) continue;
            if (out.empty() || out.back().end() != i) out.push_back({i, 0});
            ++out.back().size;
        }
        return out;
    }

private:
    std::vector<bool> taken_;
};

}  // namespace npushmem::testing

namespace npushmem {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t unit = Allocator::granule;

std::uint64_t must(Result<std::uint64_t> result) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result.value() : ~std::uint64_t{0};
}

TEST(Allocator, ReturnsTheLowestFit) {
    Allocator heap(10 * unit);
    EXPECT_EQ(must(heap.allocate(1)), 0U);
    EXPECT_EQ(must(heap.allocate(2 * unit)), unit);
    EXPECT_EQ(must(heap.allocate(unit + 1)), 3 * unit);
    ASSERT_TRUE(heap.free(unit).ok());
    EXPECT_EQ(must(heap.allocate(unit)), unit);
    EXPECT_EQ(must(heap.allocate(2 * unit)), 5 * unit);
    EXPECT_EQ(must(heap.allocate(unit)), 2 * unit);
}

TEST(Allocator, HonoursAlignmentAndKeepsThePaddingUsable) {
    Allocator heap(64 * unit);
    must(heap.allocate(unit));
    EXPECT_EQ(must(heap.allocate(unit, 16 * unit)), 16 * unit);
    EXPECT_EQ(must(heap.allocate(15 * unit)), unit);
    EXPECT_EQ(must(heap.allocate(unit, 1)), 17 * unit);
}

TEST(Allocator, TheWholeHeapCanBeOneAlignedBlock) {
    Allocator heap(64 * unit);
    EXPECT_EQ(must(heap.allocate(64 * unit, 64 * unit)), 0U);
    EXPECT_EQ(heap.statistics().free, 0U);
    EXPECT_EQ(heap.statistics().largest_free, 0U);
}

TEST(Allocator, CapacityIsRoundedDownToGranules) {
    EXPECT_EQ(Allocator(3 * unit + 63).statistics().capacity, 3 * unit);
    EXPECT_EQ(Allocator(63).allocate(1).status().code(), Code::memory);
}

TEST(Allocator, RefusesBadRequests) {
    Allocator heap(16 * unit);
    EXPECT_EQ(heap.allocate(0).status().code(), Code::argument);
    EXPECT_EQ(heap.allocate(1, 0).status().code(), Code::argument);
    EXPECT_EQ(heap.allocate(1, 96).status().code(), Code::argument);
    EXPECT_THAT(heap.allocate(1, 96).status().message(), HasSubstr("96"));
    EXPECT_EQ(heap.allocate(~std::uint64_t{0}).status().code(), Code::memory);
    EXPECT_EQ(heap.allocate(1, std::uint64_t{1} << 63).status().code(), Code::memory);
    EXPECT_EQ(heap.statistics().used, 0U);
}

TEST(Allocator, ExhaustionReportsRequestedFreeAndLargestBlock) {
    Allocator heap(16 * unit);
    const auto first = must(heap.allocate(6 * unit));
    must(heap.allocate(6 * unit));
    ASSERT_TRUE(heap.free(first).ok());
    const Status status = heap.allocate(8 * unit).status();
    EXPECT_EQ(status.code(), Code::memory);
    EXPECT_THAT(status.message(), HasSubstr("512 bytes"));
    EXPECT_THAT(status.message(), HasSubstr("640 of 1024 bytes are free"));
    EXPECT_THAT(status.message(), HasSubstr("largest free block has 384"));
}

TEST(Allocator, RejectsOffsetsThatAreNotAllocations) {
    Allocator heap(16 * unit);
    const auto at = must(heap.allocate(3 * unit));
    EXPECT_THAT(heap.free(at + unit).message(), HasSubstr("inside the allocation of 192 bytes at 0x0"));
    EXPECT_THAT(heap.free(16 * unit).message(), HasSubstr("the heap has only 0x400 bytes"));
    ASSERT_TRUE(heap.free(at).ok());
    const Status twice = heap.free(at);
    EXPECT_EQ(twice.code(), Code::argument);
    EXPECT_THAT(twice.message(), HasSubstr("freed twice"));
    EXPECT_EQ(heap.size_of(at).status().code(), Code::argument);
    EXPECT_EQ(heap.resize(at, 1).code(), Code::argument);
    EXPECT_EQ(heap.statistics().free, 16 * unit);
}

TEST(Allocator, ReturnsTheRequestedSizeOfAnAllocation) {
    Allocator heap(16 * unit);
    const auto at = must(heap.allocate(100));
    EXPECT_EQ(must(heap.size_of(at)), 100U);
    ASSERT_TRUE(heap.resize(at, 130).ok());
    EXPECT_EQ(must(heap.size_of(at)), 130U);
    EXPECT_EQ(heap.statistics().used, 3 * unit);
}

TEST(Allocator, ResizesInPlaceOnlyWhenThereIsRoom) {
    Allocator heap(8 * unit);
    const auto a = must(heap.allocate(2 * unit));
    const auto b = must(heap.allocate(2 * unit));
    EXPECT_EQ(heap.resize(a, 3 * unit).code(), Code::memory);
    EXPECT_EQ(must(heap.size_of(a)), 2 * unit);
    EXPECT_TRUE(heap.resize(b, 6 * unit).ok());
    EXPECT_EQ(heap.resize(b, 7 * unit).code(), Code::memory);
    EXPECT_EQ(heap.resize(b, ~std::uint64_t{0}).code(), Code::memory);
    EXPECT_TRUE(heap.resize(b, unit).ok());
    EXPECT_THAT(heap.free_ranges().list(), ElementsAre(Range{3 * unit, 5 * unit}));
    EXPECT_EQ(heap.resize(b, 0).code(), Code::argument);
}

TEST(Allocator, CountsHighWaterAndExtent) {
    Allocator heap(16 * unit);
    const auto a = must(heap.allocate(4 * unit));
    must(heap.allocate(4 * unit));
    ASSERT_TRUE(heap.free(a).ok());
    must(heap.allocate(unit));
    const auto now = heap.statistics();
    EXPECT_EQ(now.used, 5 * unit);
    EXPECT_EQ(now.high_water, 8 * unit);
    EXPECT_EQ(now.extent, 8 * unit);
    EXPECT_EQ(now.allocations, 2U);
    EXPECT_EQ(now.free_ranges, 2U);
}

// One random run of allocate, free and resize, checked against the model after every call. Another process must
// reproduce the trace.
class RandomRun {
public:
    explicit RandomRun(std::uint32_t seed) : random_(seed), heap_(granules * unit), model_(granules) {}

    void step() {
        switch (number(0, 5)) {
            case 0:
            case 1:
            case 2: allocate(); break;
            case 3: resize(); break;
            default: free_one(); break;
        }
        check();
    }

    void free_all() {
        while (!live_.empty()) free_one();
        check();
    }

    [[nodiscard]] const std::vector<std::uint64_t>& trace() const { return trace_; }
    [[nodiscard]] const Allocator& heap() const { return heap_; }

private:
    static constexpr std::uint64_t granules = 512;

    struct Live {
        std::uint64_t at;
        std::uint64_t count;
    };

    std::uint64_t number(std::uint64_t low, std::uint64_t high) {
        return low + static_cast<std::uint64_t>(random_()) % (high - low + 1);
    }

    // In granules; small ones more often.
    std::uint64_t some_size() { return number(1, std::uint64_t{1} << number(0, 6)); }

    void allocate() {
        const std::uint64_t count = some_size();
        const std::uint64_t alignment = std::uint64_t{1} << (number(0, 3) == 0 ? number(0, 6) : 0);
        const auto expected = model_.find(count, alignment);
        const auto got = heap_.allocate(count * unit - number(0, unit - 1), alignment * unit);
        ASSERT_EQ(got.ok(), expected.has_value());
        if (!got.ok()) return;
        ASSERT_EQ(got.value(), *expected * unit);
        model_.mark(*expected, count, true);
        live_.push_back({*expected, count});
        trace_.push_back(got.value());
    }

    void free_one() {
        if (live_.empty()) return;
        std::swap(live_[number(0, live_.size() - 1)], live_.back());
        const Live last = live_.back();
        live_.pop_back();
        ASSERT_TRUE(heap_.free(last.at * unit).ok());
        model_.mark(last.at, last.count, false);
    }

    void resize() {
        if (live_.empty()) return;
        Live& one = live_[number(0, live_.size() - 1)];
        const std::uint64_t count = some_size();
        const bool possible = count <= one.count || model_.all_free(one.at + one.count, count - one.count);
        ASSERT_EQ(heap_.resize(one.at * unit, count * unit).ok(), possible);
        if (!possible) return;
        model_.mark(one.at, one.count, false);
        model_.mark(one.at, count, true);
        one.count = count;
    }

    // The same free ranges as the model's maximal runs: nothing overlaps, nothing is lost, coalescing is complete.
    void check() {
        auto expected = model_.free_ranges();
        std::uint64_t longest = 0;
        std::uint64_t free = 0;
        for (Range& range : expected) {
            range = {range.offset * unit, range.size * unit};
            longest = std::max(longest, range.size);
            free += range.size;
        }
        ASSERT_EQ(heap_.free_ranges().list(), expected);
        const auto now = heap_.statistics();
        ASSERT_EQ(now.largest_free, longest);
        ASSERT_EQ(now.free, free);
        ASSERT_EQ(now.allocations, live_.size());
    }

    std::mt19937 random_;
    Allocator heap_;
    testing::AllocatorModel model_;
    std::vector<Live> live_;
    std::vector<std::uint64_t> trace_;
};

TEST(AllocatorProperty, AgreesWithTheNaiveModel) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        RandomRun run(seed);
        for (int i = 0; i < 500 && !HasFatalFailure(); ++i) run.step();
        run.free_all();
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_EQ(run.heap().statistics().free_ranges, 1U);
    }
}

TEST(AllocatorProperty, EqualCallsReturnEqualOffsets) {
    RandomRun one(42);
    RandomRun other(42);
    for (int i = 0; i < 1000; ++i) one.step();
    for (int i = 0; i < 1000; ++i) other.step();
    EXPECT_EQ(one.trace(), other.trace());
}

// Frees every second block of each generation and allocates blocks of twice the size, which never fit into the holes:
// the classic way to fragment a heap. The extent must stay below the header's bound.
TEST(AllocatorProperty, ExtentStaysBelowTheFirstFitBound) {
    constexpr std::uint64_t live = 4096 * unit;
    constexpr int doublings = 8;
    Allocator heap(live * 64);
    std::vector<std::uint64_t> blocks;
    for (int k = 0; k <= doublings; ++k) {
        const std::uint64_t size = unit << k;
        while (heap.statistics().used + size <= live) blocks.push_back(must(heap.allocate(size)));
        std::vector<std::uint64_t> kept;
        for (const std::uint64_t at : blocks) {
            if (at / size % 2 == 0) {
                kept.push_back(at);
            } else {
                ASSERT_TRUE(heap.free(at).ok());
            }
        }
        blocks.swap(kept);
    }
    EXPECT_GT(heap.statistics().extent, live * 2);  // the sequence is a bad one indeed
    EXPECT_LE(heap.statistics().extent, live * (doublings + 1));
}

}  // namespace

}  // namespace npushmem
