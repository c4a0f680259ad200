// SPDX-License-Identifier: BSD-3-Clause
// Several PEs as threads over one host memory; the barrier is a std::barrier.
#include "core/memory/collective_heap.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/core/memory/thread_peers.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t slice = 4ULL << 20;

// One PE of the test.
struct Pe {
    int number;
    SymmetricHeap& symmetric;
    CollectiveHeap& heap;
    ThreadPeers& peers;
};

void run_pes_that(bool use_sums, int npes, const std::function<void(Pe&)>& body) {
    auto memory = HostMemory::create(slice, npes, "");
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    std::barrier barrier(npes);
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < npes; ++pe) {
        threads.emplace_back([&, pe] {
            SCOPED_TRACE(use_sums ? "with sums" : "with records");
            auto symmetric = SymmetricHeap::create(memory.value(), pe, slice);
            ASSERT_TRUE(symmetric.ok());
            ThreadPeers peers(memory.value(), barrier, pe, npes);
            if (use_sums) peers.use_sums();
            CollectiveHeap heap(symmetric.value(), peers);
            Pe one{pe, symmetric.value(), heap, peers};
            body(one);
        });
    }
}

// As in jobs of few PEs, then as in those of many.
void run_pes(int npes, const std::function<void(Pe&)>& body) {
    for (const bool use_sums : {false, true}) run_pes_that(use_sums, npes, body);
}

TEST(CollectiveHeap, GivesAllPesTheSameOffset) {
    run_pes(4, [](Pe& pe) {
        for (std::uint64_t bytes : {1U, 100U, 70000U}) {
            auto object = pe.heap.allocate(HeapCall::malloc, bytes, 64);
            ASSERT_TRUE(object.ok()) << object.status().message();
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object.value()) % 64, 0U);
            EXPECT_TRUE(pe.heap.free(object.value()).ok());
        }
        EXPECT_EQ(pe.symmetric.statistics().allocations, 1U) << "the control block";
    });
}

TEST(CollectiveHeap, RefusesToFreeOrResizeARegisteredBuffer) {
    run_pes(2, [](Pe& pe) {
        void* const object = pe.heap.allocate(HeapCall::malloc, 4096, 64).value();
        const std::uint64_t offset = pe.symmetric.offset_of(object).value();
        pe.heap.set_buffer(offset, true);
        for (const Status& refused : {pe.heap.free(object), pe.heap.reallocate(object, 64).status()}) {
            EXPECT_EQ(refused.code(), Code::argument);
            EXPECT_THAT(refused.message(), HasSubstr("npushmemx_buffer_unregister_symmetric"));
        }
        pe.heap.set_buffer(offset, false);
        EXPECT_TRUE(pe.heap.free(object).ok());
    });
}

// After a difference all PEs read all records. A PE that missed a call reads them at its next call of the same parity.
TEST(CollectiveHeap, SumsSpareTheRecordsOfEqualCalls) {
    run_pes_that(true, 3, [](Pe& pe) {
        const auto call = [&pe] {
            EXPECT_TRUE(pe.heap.allocate(HeapCall::malloc, 64, 64).ok());
            return std::exchange(pe.peers.records_read, 0);
        };
        for (int calls = 0; calls < 5; ++calls) EXPECT_EQ(call(), 0);
        EXPECT_FALSE(pe.heap.allocate(HeapCall::malloc, 64 + static_cast<unsigned>(pe.number), 64).ok());
        EXPECT_GT(std::exchange(pe.peers.records_read, 0), 0);
        for (int calls = 0; calls < 5; ++calls) EXPECT_EQ(call(), 0);
        const bool misses_a_call = pe.number == 2;
        if (misses_a_call) {
            ASSERT_TRUE(pe.peers.heap_barrier().ok());
        } else {
            EXPECT_FALSE(pe.heap.allocate(HeapCall::malloc, 64, 64).ok());
            EXPECT_GT(std::exchange(pe.peers.records_read, 0), 0);
        }
        EXPECT_EQ(call(), 0) << "the sum of the other parity";
        EXPECT_EQ(call() > 0, misses_a_call);
        for (int calls = 0; calls < 5; ++calls) EXPECT_EQ(call(), 0);
    });
}

TEST(CollectiveHeap, ZeroBytesIsNullAndNoCall) {
    run_pes(1, [](Pe& pe) {
        auto none = pe.heap.allocate(HeapCall::malloc, 0, 64);
        ASSERT_TRUE(none.ok());
        EXPECT_EQ(none.value(), nullptr);
    });
}

TEST(CollectiveHeap, CallocClearsRecycledMemory) {
    run_pes(2, [](Pe& pe) {
        auto first = pe.heap.allocate(HeapCall::malloc, 4096, 64);
        std::memset(first.value(), 0xff, 4096);
        ASSERT_TRUE(pe.heap.free(first.value()).ok());
        auto second = pe.heap.allocate(HeapCall::calloc, 4096, 64);
        ASSERT_EQ(second.value(), first.value()) << "the test wants the same memory again";
        const auto* bytes = static_cast<const unsigned char*>(second.value());
        EXPECT_TRUE(std::all_of(bytes, bytes + 4096, [](unsigned char byte) { return byte == 0; }));
    });
}

TEST(CollectiveHeap, DifferentSizesAreFoundOnEveryPeAndUndone) {
    run_pes(3, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, pe.number == 1 ? 8 : 16, 64);
        EXPECT_EQ(object.status().code(), Code::mismatch);
        EXPECT_THAT(object.status().message(), HasSubstr("calls malloc of 8 bytes"));
        EXPECT_THAT(object.status().message(), HasSubstr("calls malloc of 16 bytes"));
        EXPECT_EQ(pe.symmetric.statistics().allocations, 1U);
        EXPECT_TRUE(pe.heap.allocate(HeapCall::malloc, 32, 64).ok()) << "usable afterwards";
    });
}

TEST(CollectiveHeap, AllowsDifferentSizesOnRequest) {
    run_pes(3, [](Pe& pe) {
        const auto bytes = 1000U * static_cast<unsigned>(pe.number + 1);
        for (const HeapCall call : {HeapCall::malloc, HeapCall::calloc}) {
            auto object = pe.heap.allocate(call, bytes, 64, Sizes::may_differ);
            ASSERT_TRUE(object.ok()) << object.status().message();
            const std::uint64_t offset = pe.symmetric.offset_of(object.value()).value();
            EXPECT_EQ(pe.symmetric.size_of(offset).value(), 3000U) << "as much as the last asked for";
            EXPECT_TRUE(pe.heap.free(object.value()).ok());
        }
        EXPECT_EQ(pe.symmetric.statistics().allocations, 1U);
    });
}

TEST(CollectiveHeap, OnlySizesMayDiffer) {
    run_pes(2, [](Pe& pe) {
        const auto call = pe.number == 0 ? HeapCall::malloc : HeapCall::calloc;
        const auto other_call = pe.heap.allocate(call, 64U << pe.number, 64, Sizes::may_differ);
        EXPECT_EQ(other_call.status().code(), Code::mismatch);
        const auto other_alignment = pe.heap.allocate(HeapCall::align, 64, 64U << pe.number, Sizes::may_differ);
        EXPECT_EQ(other_alignment.status().code(), Code::mismatch);
        EXPECT_EQ(pe.symmetric.statistics().allocations, 1U);
    });
}

TEST(CollectiveHeap, DifferentCallsAreFound) {
    run_pes(2, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, 64, 64);
        const Status done =
            pe.number == 0 ? pe.heap.free(object.value()) : pe.heap.allocate(HeapCall::calloc, 64, 64).status();
        EXPECT_EQ(done.code(), Code::mismatch);
        EXPECT_THAT(done.message(), HasSubstr("free of the object"));
    });
}

// The calls differ in one value.
TEST(CollectiveHeap, FindsEachDifference) {
    run_pes(3, [](Pe& pe) {
        const bool differs = pe.number == 1;
        void* const a = pe.heap.allocate(HeapCall::malloc, 64, 64).value();
        void* const b = pe.heap.allocate(HeapCall::malloc, 64, 64).value();
        EXPECT_EQ(pe.heap.free(differs ? b : a).code(), Code::mismatch) << "offset";
        EXPECT_EQ(pe.heap.allocate(HeapCall::malloc, differs ? 65 : 66, 64).status().code(), Code::mismatch) << "bytes";
        EXPECT_EQ(pe.heap.allocate(HeapCall::align, 64, differs ? 64 : 128).status().code(), Code::mismatch)
            << "alignment";
        EXPECT_EQ(pe.heap.allocate(differs ? HeapCall::malloc : HeapCall::calloc, 64, 64).status().code(),
                  Code::mismatch)
            << "call";
        HeapRecord record{};
        record.call = static_cast<std::uint32_t>(HeapCall::malloc);
        const Status own = differs ? Status{Code::memory, "this PE has none"} : Status{};
        EXPECT_EQ(pe.heap.agree(record, own).code(), Code::memory) << "code";
        record.result = differs ? 64 : 128;
        EXPECT_EQ(pe.heap.agree(record, {}).code(), Code::mismatch) << "result";
        EXPECT_EQ(pe.symmetric.statistics().allocations, 3U);
    });
}

TEST(CollectiveHeap, ExhaustionReportsTheSizesAndLeavesTheHeapUnchanged) {
    run_pes(2, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, slice, 64);
        EXPECT_EQ(object.status().code(), Code::memory);
        EXPECT_THAT(object.status().message(), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"));
        EXPECT_TRUE(pe.heap.allocate(HeapCall::malloc, slice / 2, 64).ok());
    });
}

TEST(CollectiveHeap, AFailureOfOnePeFailsAll) {
    run_pes(2, [](Pe& pe) {
        // One PE's heap is fuller than the other's: an asymmetry created outside the collective calls.
        if (pe.number == 1) {
            ASSERT_TRUE(pe.symmetric.allocate(slice * 3 / 4, 64).ok());
        }
        auto object = pe.heap.allocate(HeapCall::malloc, slice / 2, 64);
        EXPECT_EQ(object.status().code(), Code::memory);
        if (pe.number == 0) {
            EXPECT_THAT(object.status().message(), HasSubstr("failed on PE 1"));
        }
    });
}

TEST(CollectiveHeap, DetectsDifferentHeaps) {
    run_pes(2, [](Pe& pe) {
        if (pe.number == 1) {
            ASSERT_TRUE(pe.symmetric.allocate(64, 64).ok());
        }
        EXPECT_THAT(pe.heap.allocate(HeapCall::malloc, 64, 64).status().message(), HasSubstr("the heaps differ"));
    });
}

// As after a death: PE p has p objects of its own, and PE 0 a gap.
TEST(CollectiveHeap, FindsPlacesThatAreFreeOnAllPesWhereHeapsMayDiffer) {
    run_pes(3, [](Pe& pe) {
        const auto below = pe.symmetric.allocate(4096, 64);
        for (int i = 0; i < pe.number; ++i) ASSERT_TRUE(pe.symmetric.allocate(1000, 64).ok());
        if (pe.number == 0) (void)pe.symmetric.free(below.value());
        const auto before = pe.symmetric.statistics().allocations;
        pe.peers.may_differ = true;
        for (const std::uint64_t bytes : {64U, 5000U}) {
            const auto object = pe.heap.allocate(HeapCall::calloc, bytes, 64);
            ASSERT_TRUE(object.ok()) << object.status().message();
            EXPECT_EQ(pe.symmetric.statistics().allocations, before + 1);
            EXPECT_TRUE(pe.heap.free(object.value()).ok());
        }
        const auto too_much = pe.heap.allocate(HeapCall::malloc, pe.number == 1 ? slice : 64, 64);
        EXPECT_EQ(too_much.status().code(), Code::mismatch);
        EXPECT_EQ(pe.symmetric.statistics().allocations, before);
    });
}

// As after a call that a death has ended on one PE only.
TEST(CollectiveHeap, FreesAnObjectOnOnePeWhereHeapsMayDiffer) {
    run_pes(2, [](Pe& pe) {
        const auto before = pe.symmetric.statistics().allocations;
        const auto first = pe.heap.allocate(HeapCall::malloc, 64, 64);
        ASSERT_TRUE(first.ok());
        pe.peers.may_differ = true;
        EXPECT_TRUE(pe.heap.may_differ());
        if (pe.number == 1) pe.heap.free_here(first.value());
        const auto second = pe.heap.allocate(HeapCall::malloc, 64, 64);
        ASSERT_TRUE(second.ok()) << second.status().message();
        EXPECT_NE(second.value(), first.value()) << "in use on PE 0";
        if (pe.number == 0) pe.heap.free_here(first.value());
        EXPECT_TRUE(pe.heap.barrier().ok());
        EXPECT_TRUE(pe.heap.free(second.value()).ok());
        pe.heap.free_here(nullptr);
        EXPECT_EQ(pe.symmetric.statistics().allocations, before);
    });
}

TEST(CollectiveHeap, ReallocKeepsTheContent) {
    run_pes(2, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, 8, 64);
        *static_cast<long*>(object.value()) = 42 + pe.number;
        auto larger = pe.heap.reallocate(object.value(), 1 << 20);
        ASSERT_TRUE(larger.ok()) << larger.status().message();
        EXPECT_EQ(*static_cast<long*>(larger.value()), 42 + pe.number);
        auto failed = pe.heap.reallocate(larger.value(), slice);
        EXPECT_EQ(failed.status().code(), Code::memory);
        EXPECT_EQ(*static_cast<long*>(larger.value()), 42 + pe.number) << "the object stays";
        EXPECT_TRUE(pe.heap.free(larger.value()).ok());
    });
}

TEST(CollectiveHeap, ReallocWaitsForPutsOfOthersIntoTheObject) {
    run_pes(2, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, 8, 64);
        auto behind = pe.heap.allocate(HeapCall::malloc, 8, 64);
        ASSERT_TRUE(behind.ok()) << "the object cannot grow where it is";
        if (pe.number == 1) {
            // Into PE 0's copy, which may have entered realloc already.
            std::byte* there = pe.symmetric.base() - slice;
            *reinterpret_cast<long*>(there + (static_cast<std::byte*>(object.value()) - pe.symmetric.base())) = 77;
        }
        auto larger = pe.heap.reallocate(object.value(), 4096);
        ASSERT_TRUE(larger.ok()) << larger.status().message();
        EXPECT_NE(larger.value(), object.value());
        if (pe.number == 0) {
            EXPECT_EQ(*static_cast<long*>(larger.value()), 77);
        }
    });
}

TEST(CollectiveHeap, ReallocStaysWhereThereIsRoom) {
    run_pes(2, [](Pe& pe) {
        constexpr std::uint64_t most = slice * 3 / 4;
        auto object = pe.heap.allocate(HeapCall::malloc, 100, 64);
        auto larger = pe.heap.reallocate(object.value(), most);
        ASSERT_TRUE(larger.ok()) << larger.status().message();
        EXPECT_EQ(larger.value(), object.value());
        std::memset(larger.value(), 5, most);
        auto smaller = pe.heap.reallocate(larger.value(), most - 4096);
        ASSERT_TRUE(smaller.ok()) << "there is no room for a second one: " << smaller.status().message();
        EXPECT_EQ(smaller.value(), object.value());
        EXPECT_TRUE(pe.heap.free(smaller.value()).ok());
        EXPECT_EQ(pe.symmetric.statistics().allocations, 1U);
    });
}

TEST(CollectiveHeap, ReallocThatFailsOnOnePeIsUndoneOnAll) {
    run_pes(2, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, 64, 64);
        if (pe.number == 1) {
            ASSERT_TRUE(pe.symmetric.allocate(slice * 3 / 4, 64).ok()) << "an asymmetry behind the collective calls";
        }
        auto larger = pe.heap.reallocate(object.value(), slice / 2);
        EXPECT_EQ(larger.status().code(), Code::memory);
        EXPECT_EQ(
            pe.symmetric
                .size_of(static_cast<std::uint64_t>(static_cast<std::byte*>(object.value()) - pe.symmetric.base()))
                .value(),
            64U);
        EXPECT_TRUE(pe.heap.free(object.value()).ok());
    });
}

TEST(CollectiveHeap, DetectsAPeWithoutAHeapCallAndRecovers) {
    run_pes(3, [](Pe& pe) {
        auto first = pe.heap.allocate(HeapCall::malloc, 64, 64);
        ASSERT_TRUE(first.ok());
        if (pe.number == 0) {
            ASSERT_TRUE(pe.peers.heap_barrier().ok());  // a plain barrier
        } else {
            const auto failed = pe.heap.allocate(HeapCall::malloc, 64, 64);
            EXPECT_EQ(failed.status().code(), Code::mismatch);
            EXPECT_THAT(failed.status().message(), HasSubstr("where PE 0 makes no symmetric heap call"));
        }
        EXPECT_TRUE(pe.heap.allocate(HeapCall::malloc, 64, 64).ok());
    });
}

TEST(CollectiveHeap, RejectsFreeOfANonObject) {
    run_pes(1, [](Pe& pe) {
        int local = 0;
        const Status outside = pe.heap.free(&local);
        EXPECT_EQ(outside.code(), Code::not_symmetric);
        EXPECT_THAT(outside.message(), StartsWith("address 0x"));
        EXPECT_EQ(pe.heap.free(pe.symmetric.base()).code(), Code::argument) << "the control block";
        auto object = pe.heap.allocate(HeapCall::malloc, 256, 64);
        EXPECT_EQ(pe.heap.free(static_cast<std::byte*>(object.value()) + 64).code(), Code::argument);
        EXPECT_TRUE(pe.heap.free(object.value()).ok());
        EXPECT_EQ(pe.heap.free(object.value()).code(), Code::argument) << "twice";
    });
}

TEST(CollectiveHeap, RejectsAPointerThatIsLocalToAPe) {
    run_pes(3, [](Pe& pe) {
        auto object = pe.heap.allocate(HeapCall::malloc, 256, 64);
        ASSERT_TRUE(object.ok());
        long own = 0;
        void* const given = pe.number == 1 ? &own : object.value();
        for (const bool resize : {false, true}) {
            const Status done = resize ? pe.heap.reallocate(given, 512).status() : pe.heap.free(given);
            EXPECT_EQ(done.code(), pe.number == 1 ? Code::not_symmetric : Code::mismatch);
            EXPECT_THAT(done.message(), Not(HasSubstr("offset 0x0")));
            if (pe.number != 1) {
                EXPECT_THAT(done.message(), HasSubstr("PE 1 calls"));
                EXPECT_THAT(done.message(), HasSubstr("which is not the beginning of a symmetric object"));
            }
        }
        EXPECT_TRUE(pe.heap.free(object.value()).ok());
    });
}

TEST(CollectiveHeap, AlignmentsHoldForTheAddress) {
    run_pes(1, [](Pe& pe) {
        for (std::uint64_t alignment = 64; alignment <= (2ULL << 20); alignment *= 2) {
            auto object = pe.heap.allocate(HeapCall::align, 1, alignment);
            ASSERT_TRUE(object.ok()) << alignment;
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object.value()) % alignment, 0U);
            ASSERT_TRUE(pe.heap.free(object.value()).ok());
        }
        EXPECT_EQ(pe.heap.allocate(HeapCall::align, 1, 8ULL << 20).status().code(), Code::argument);
    });
}

}  // namespace
}  // namespace npushmem
