// SPDX-License-Identifier: BSD-3-Clause
// Several PEs as threads, each with its own mapping of one host memory, as processes have.
#include "core/memory/registered_buffers.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "core/base/host_facts.hpp"
#include "core/memory/address_mappings.hpp"
#include "tests/fakes/qemu_user.hpp"
#include "tests/unit/core/memory/thread_peers.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t slice_bytes = 8ULL << 20;

// One PE: its number, its view of the host's memory, and its buffers.
struct BufferPe {
    int number;
    int npes;
    HostMemory& memory;
    SymmetricHeap& heap;
    CollectiveHeap& collective;
    ThreadPeers& peers;
    std::barrier<>& barrier;
    std::optional<RegisteredBuffers> buffers;

    // This PE's view of another one's part of an object.
    [[nodiscard]] std::byte* at(int pe, const void* symmetric) const {
        return memory.slice(pe) + heap.offset_of(symmetric).value();
    }
    [[nodiscard]] std::size_t objects() const { return heap.statistics().allocations; }
};

void run_buffer_pes_that(bool use_sums, int npes, const std::function<void(BufferPe&)>& body) {
    auto first = HostMemory::create(slice_bytes, npes, "");
    ASSERT_TRUE(first.ok()) << first.status().message();
    std::barrier barrier(npes);
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < npes; ++pe) {
        threads.emplace_back([&, pe] {
            SCOPED_TRACE(use_sums ? "with sums" : "with records");
            auto memory = HostMemory::join(SharedSegment::attach(first.value().handle()), first.value().handle(),
                                           slice_bytes, npes);
            ASSERT_TRUE(memory.ok()) << memory.status().message();
            auto heap = SymmetricHeap::create(memory.value(), pe, slice_bytes);
            ASSERT_TRUE(heap.ok());
            ThreadPeers peers(memory.value(), barrier, pe, npes);
            if (use_sums) peers.use_sums();
            CollectiveHeap collective(heap.value(), peers);
            BufferPe one{pe, npes, memory.value(), heap.value(), collective, peers, barrier, std::nullopt};
            one.buffers.emplace(one.memory, one.heap, one.collective, pe, npes);
            barrier.arrive_and_wait();  // all control blocks exist
            body(one);
            barrier.arrive_and_wait();
        });
    }
}

// As in jobs of few PEs, then as in those of many.
void run_buffer_pes(int npes, const std::function<void(BufferPe&)>& body) {
    for (const bool use_sums : {false, true}) run_buffer_pes_that(use_sums, npes, body);
}

// Pages of the test: private, or of a file from its second page on.
struct TestPages {
    explicit TestPages(std::uint64_t pages, bool of_file = false) : bytes(pages * page_bytes()) {
        if (of_file) {
            file = FileDescriptor(memfd_create("buffer", MFD_CLOEXEC));
            EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes + page_bytes())), 0);
        }
        void* const mapped =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file.get(),
                 of_file ? static_cast<off_t>(page_bytes()) : 0);
        EXPECT_NE(mapped, MAP_FAILED);
        base = static_cast<std::byte*>(mapped);
    }
    TestPages(const TestPages&) = delete;
    TestPages& operator=(const TestPages&) = delete;
    ~TestPages() { munmap(base, bytes); }
    [[nodiscard]] bool shared() const {
        const auto mapping = uniform_mapping(base, bytes);
        EXPECT_TRUE(mapping.ok()) << mapping.status().message();
        return mapping.ok() && mapping.value().shared;
    }

    std::uint64_t bytes;
    FileDescriptor file;
    std::byte* base = nullptr;
};

// Even PEs have private memory, odd ones a file, or the reverse.
TEST(RegisteredBuffers, AllPesOfTheHostSeeMemoryOfEitherKind) {
    for (const int first_with_file : {0, 1})
        run_buffer_pes(3, [&](BufferPe& pe) {
            TestPages own(3, pe.number % 2 == first_with_file);
            std::memset(own.base, pe.number + 1, own.bytes);
            const auto added = pe.buffers->add(own.base, own.bytes, 0);
            ASSERT_TRUE(added.ok()) << added.status().message();
            for (int other = 0; other < pe.npes; ++other) {
                EXPECT_EQ(pe.at(other, added.value())[own.bytes - 1], std::byte(other + 1));
                pe.at(other, added.value())[8 + pe.number] = std::byte(40 + pe.number);
            }
            pe.barrier.arrive_and_wait();
            for (int other = 0; other < pe.npes; ++other) EXPECT_EQ(own.base[8 + other], std::byte(40 + other));
            EXPECT_EQ(pe.buffers->symmetric_address(own.base + 5), static_cast<std::byte*>(added.value()) + 5);
            EXPECT_EQ(pe.buffers->symmetric_address(own.base + own.bytes), nullptr);
            const Status removed = pe.buffers->remove(added.value(), own.bytes);
            EXPECT_TRUE(removed.ok()) << removed.message();
            EXPECT_EQ(own.shared(), own.file.valid());
            EXPECT_EQ(own.base[8], std::byte{40});
            EXPECT_EQ(own.base[own.bytes - 1], std::byte(pe.number + 1));
            EXPECT_EQ(pe.buffers->symmetric_address(own.base), nullptr);
            EXPECT_EQ(pe.objects(), 1U) << "the control block";
            // The heap's pages are mapped again where files were.
            const auto object = pe.collective.allocate(HeapCall::calloc, own.bytes, page_bytes());
            ASSERT_EQ(object.value(), added.value()) << "the test needs the same memory";
            static_cast<std::byte*>(object.value())[9] = std::byte(60 + pe.number);
            pe.barrier.arrive_and_wait();
            for (int other = 0; other < pe.npes; ++other)
                EXPECT_EQ(pe.at(other, object.value())[9], std::byte(60 + other));
            EXPECT_NE(own.base[9], std::byte(60 + pe.number));
        });
}

TEST(RegisteredBuffers, MemoryOfFilesTakesNoMemoryOfTheHeap) {
    run_buffer_pes(1, [](BufferPe& pe) {
        const std::uint64_t before = pe.heap.committed_bytes();
        TestPages own(256, true);
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        std::memset(added.value(), 3, own.bytes);
        EXPECT_EQ(pe.heap.committed_bytes(), before);
        std::byte in_file{};
        EXPECT_EQ(pread(own.file.get(), &in_file, 1, static_cast<off_t>(page_bytes())), 1);
        EXPECT_EQ(in_file, std::byte{3});
    });
}

// As of a PE that has died since: nobody has the file any more.
TEST(RegisteredBuffers, IgnoreTheFileOfAnEarlierRegistration) {
    run_buffer_pes(1, [](BufferPe& pe) {
        const BufferFile stale{{getpid(), 1 << 20, 1, 1, 4096}, 0, 1000};
        ASSERT_TRUE(pe.memory.publish_buffer(1, stale).ok());
        RegisteredBuffers of_two(pe.memory, pe.heap, pe.collective, 0, 2);
        TestPages own(1, false);
        const auto added = of_two.add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        EXPECT_TRUE(of_two.remove(added.value(), own.bytes).ok());
    });
}

// One PE's file is cut between the two barriers, so that no PE can map it.
TEST(RegisteredBuffers, AMappingThatFailsOnOnePeIsUndoneOnAll) {
    run_buffer_pes(3, [](BufferPe& pe) {
        TestPages own(2, pe.number == 1);
        std::memset(own.base, 7, own.bytes);
        pe.peers.after_barrier = [&](std::uint64_t) {
            if (pe.number == 1) {
                EXPECT_EQ(ftruncate(own.file.get(), 0), 0);
            }
            pe.barrier.arrive_and_wait();
        };
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        pe.peers.after_barrier = nullptr;
        EXPECT_FALSE(added.ok());
        EXPECT_THAT(added.status().message(), HasSubstr("is not the expected memory"));
        EXPECT_EQ(own.shared(), own.file.valid());
        if (pe.number != 1) {
            EXPECT_EQ(own.base[own.bytes - 1], std::byte{7});
        }
        EXPECT_EQ(pe.objects(), 1U);
        EXPECT_EQ(pe.buffers->symmetric_address(own.base), nullptr);
        TestPages other(2);
        EXPECT_TRUE(pe.buffers->add(other.base, other.bytes, 0).ok()) << "usable afterwards";
    });
}

// As after a death: PE p has p objects of its own.
TEST(RegisteredBuffers, FindPlacesThatAreFreeOnAllPesWhereHeapsMayDiffer) {
    run_buffer_pes(3, [](BufferPe& pe) {
        for (int i = 0; i < pe.number; ++i) ASSERT_TRUE(pe.heap.allocate(page_bytes(), page_bytes()).ok());
        const std::size_t before = pe.objects();
        TestPages own(3, pe.number == 1);
        std::memset(own.base, pe.number + 1, own.bytes);
        const auto differs = pe.buffers->add(own.base, own.bytes, 0);
        EXPECT_EQ(differs.status().code(), Code::mismatch) << "without a death it is a mistake";
        pe.peers.may_differ = true;
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        for (int other = 0; other < pe.npes; ++other)
            EXPECT_EQ(pe.at(other, added.value())[own.bytes - 1], std::byte(other + 1));
        EXPECT_EQ(pe.objects(), before + 1);
        EXPECT_TRUE(pe.buffers->remove(added.value(), own.bytes).ok());
        EXPECT_EQ(pe.objects(), before);
    });
}

// The PEs are threads of one process, so that each is a world of its own.
TEST(RegisteredBuffers, MemoryIsABufferOfOneWorldAtATime) {
    TestPages shared(1);
    run_buffer_pes(2, [&](BufferPe& pe) {
        const auto both = pe.buffers->add(shared.base, shared.bytes, 0);
        EXPECT_EQ(both.status().code(), Code::argument);
        pe.barrier.arrive_and_wait();  // both calls have ended
        TestPages own(1);
        std::byte* const mine = pe.number == 0 ? shared.base : own.base;
        const auto added = pe.buffers->add(mine, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        const auto again = pe.buffers->add(pe.number == 0 ? own.base : shared.base, own.bytes, 0);
        EXPECT_EQ(again.status().code(), Code::argument);
        EXPECT_TRUE(pe.buffers->remove(added.value(), own.bytes).ok());
        const auto moved = pe.buffers->add(pe.number == 0 ? own.base : shared.base, own.bytes, 0);
        EXPECT_TRUE(moved.ok()) << moved.status().message();
        EXPECT_TRUE(pe.buffers->remove(moved.value(), own.bytes).ok());
    });
}

TEST(RegisteredBuffers, TheEndRestoresPrivateMemory) {
    if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user leaves mappings out of /proc/self/maps";
    run_buffer_pes(2, [](BufferPe& pe) {
        TestPages own(2);
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        EXPECT_TRUE(own.shared());
        own.base[7] = std::byte{5};
        pe.buffers.reset();
        EXPECT_FALSE(own.shared());
        EXPECT_EQ(own.base[7], std::byte{5});
    });
}

TEST(RegisteredBuffers, AFileIsRefusedWhereANicPinsTheHeap) {
    run_buffer_pes(2, [](BufferPe& pe) {
        pe.heap.retain_pages();
        TestPages of_file(1, true);
        const auto refused = pe.buffers->add(of_file.base, of_file.bytes, 0);
        EXPECT_EQ(refused.status().code(), Code::unsupported);
        EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("/memfd:buffer"), HasSubstr("private memory")));
        TestPages own(1);
        EXPECT_TRUE(pe.buffers->add(own.base, own.bytes, 0).ok());
    });
}

// Only one PE has a file, and all get the reason's code.
TEST(RegisteredBuffers, AFileIsRefusedWhereAPeCannotOpenIt) {
    run_buffer_pes(2, [](BufferPe& pe) {
        pe.buffers.reset();
        pe.buffers.emplace(pe.memory, pe.heap, pe.collective, pe.number, pe.npes, false);
        TestPages mixed(1, pe.number == 1);
        const auto refused = pe.buffers->add(mixed.base, mixed.bytes, 0);
        EXPECT_EQ(refused.status().code(), Code::unsupported);
        EXPECT_THAT(refused.status().message(),
                    HasSubstr(pe.number == 1 ? "in other containers" : "failed on PE 1 (unsupported)"));
        TestPages own(1);
        EXPECT_TRUE(pe.buffers->add(own.base, own.bytes, 0).ok());
    });
}

TEST(RegisteredBuffers, SizesOfHugePagesAreAligned) {
    run_buffer_pes(1, [](BufferPe& pe) {
        constexpr std::uint64_t huge = 2ULL << 20;
        TestPages own(huge / page_bytes());
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok()) << added.status().message();
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(added.value()) % huge, 0U);
    });
}

// The other PEs' view of a difference; the arguments of one PE are in api_buffers.
TEST(RegisteredBuffers, DifferencesNameThePesAndTheirCalls) {
    run_buffer_pes(2, [](BufferPe& pe) {
        TestPages own(2);
        const auto differ = pe.buffers->add(own.base, own.bytes - (pe.number == 1 ? page_bytes() : 0), 0);
        EXPECT_EQ(differ.status().code(), Code::mismatch);
        EXPECT_THAT(differ.status().message(), HasSubstr("buffer_register_symmetric of"));
        const auto added = pe.buffers->add(own.base, own.bytes, 0);
        ASSERT_TRUE(added.ok());
        const Status removed =
            pe.number == 0 ? pe.buffers->remove(added.value(), own.bytes) : pe.buffers->remove(own.base, own.bytes);
        EXPECT_EQ(removed.code(), pe.number == 0 ? Code::mismatch : Code::argument);
        EXPECT_THAT(removed.message(),
                    HasSubstr(pe.number == 0 ? "buffer_unregister_symmetric of" : "not the symmetric address"));
        EXPECT_TRUE(own.shared()) << "still registered";
        EXPECT_TRUE(pe.buffers->remove(added.value(), own.bytes).ok());
    });
}

}  // namespace
}  // namespace npushmem
