// SPDX-License-Identifier: BSD-3-Clause
// Uses the kernel's events, where they are available.
#include "transports/verbs/userfault_watch.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using network::WireContext;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t bytes = 64 << 10;

// Writable memory that the destructor unmaps.
class Mapping {
public:
    explicit Mapping(int flags = MAP_PRIVATE | MAP_ANONYMOUS, void* at = nullptr)
        : at_(::mmap(at, bytes, PROT_READ | PROT_WRITE, flags | (at != nullptr ? MAP_FIXED : 0), -1, 0)) {
        std::memset(at_, 1, bytes);
    }
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(at_, other.at_);
        return *this;
    }
    ~Mapping() {
        if (at_ != nullptr) (void)::munmap(at_, bytes);
    }
    [[nodiscard]] void* get() const { return at_; }
    // The memory has another owner now, or none.
    void release() { at_ = nullptr; }
    [[nodiscard]] AddressRange range() const {
        const auto begin = reinterpret_cast<std::uintptr_t>(at_);
        return {begin, begin + bytes};
    }

private:
    void* at_;
};

// Holds this process's open descriptors until it is killed or this process ends.
pid_t fork_idle() {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
}

class UserfaultWatchTest : public ::testing::Test {
protected:
    void SetUp() override {
        auto opened = UserfaultWatch::open();
        if (!opened.ok()) GTEST_SKIP() << opened.status().message();
        watch_ = std::move(opened).value();
        if (!watch_->watch(Mapping().range())) GTEST_SKIP() << "this kernel cannot watch without protecting";
        position_ = watch_->now();
        std::vector<AddressRange> ignored;  // that mapping's end may not have been noted yet
        (void)changes(ignored);
    }
    MemoryWatch::ChangesResult poll_once(std::vector<AddressRange>& of) {
        return watch_->changes(position_, [&](const AddressRange& range) { of.push_back(range); });
    }
    // A change may still be in progress for a moment after its event has been read.
    MemoryWatch::ChangesResult changes(std::vector<AddressRange>& of) {
        for (;;)
            if (const auto out = poll_once(of); out != MemoryWatch::ChangesResult::in_progress) return out;
    }
    std::vector<AddressRange> changes() {
        std::vector<AddressRange> out;
        EXPECT_EQ(changes(out), MemoryWatch::ChangesResult::all);
        return out;
    }

    std::unique_ptr<UserfaultWatch> watch_;
    MemoryWatch::Position position_ = 0;
};

TEST_F(UserfaultWatchTest, ReportsEveryChangeThatRemovesPages) {
    struct Change {
        const char* name;
        std::function<bool(Mapping&)> make;
    };
    const auto unmap = [](Mapping& of) {
        const bool done = ::munmap(of.get(), bytes) == 0;
        of.release();
        return done;
    };
    const auto unmap_some = [](Mapping& of) { return ::munmap(static_cast<std::byte*>(of.get()) + 8192, 4096) == 0; };
    const auto empty = [](Mapping& of) { return ::madvise(of.get(), bytes, MADV_DONTNEED) == 0; };
    const auto empty_lazily = [](Mapping& of) { return ::madvise(of.get(), bytes, MADV_FREE) == 0; };
    const auto shrink = [](Mapping& of) { return ::mremap(of.get(), bytes, bytes / 2, 0) == of.get(); };
    const auto replace = [](Mapping& of) {
        Mapping with(MAP_PRIVATE | MAP_ANONYMOUS, of.get());
        const bool done = with.get() == of.get();
        of.release();
        return done;
    };
    const auto move = [](Mapping& of) {
        Mapping to;
        // UCX replaces mremap by a function that ignores the destination.
        const long moved = ::syscall(SYS_mremap, of.get(), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to.get());
        const bool done = moved == reinterpret_cast<std::intptr_t>(to.get());
        of.release();
        return done;
    };
    for (const Change& change :
         {Change{"munmap", unmap}, Change{"munmap of a page", unmap_some}, Change{"madvise", empty},
          Change{"madvise, lazily", empty_lazily}, Change{"mremap to less", shrink}, Change{"mmap over it", replace},
          Change{"mremap", move}}) {
        SCOPED_TRACE(change.name);
        Mapping memory;
        const AddressRange range = memory.range();
        ASSERT_TRUE(watch_->watch(range));
        EXPECT_THAT(changes(), IsEmpty());
        ASSERT_TRUE(change.make(memory)) << std::strerror(errno);
        const auto reported = changes();
        EXPECT_TRUE(
            std::any_of(reported.begin(), reported.end(), [&](const auto& each) { return each.overlaps(range); }));
        memory = Mapping();
        (void)changes();
    }
}

TEST_F(UserfaultWatchTest, IgnoresOtherMemoryAndOtherChanges) {
    const Mapping memory;
    ASSERT_TRUE(watch_->watch(memory.range()));
    { const Mapping other; }
    ASSERT_EQ(::mprotect(memory.get(), bytes, PROT_READ), 0);
    ASSERT_EQ(::mprotect(memory.get(), bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(UserfaultWatchTest, RejectsMemoryWhoseChangesAreNotReported) {
    const Mapping shared(MAP_SHARED | MAP_ANONYMOUS);
    EXPECT_FALSE(watch_->watch(shared.range()));
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto code = reinterpret_cast<std::uintptr_t>(&is_private_anonymous) / page * page;
    EXPECT_FALSE(watch_->watch({code, code + page}));
    const Mapping memory;
    EXPECT_TRUE(watch_->watch(memory.range()));
    ASSERT_EQ(::munmap(static_cast<std::byte*>(memory.get()) + 8192, 4096), 0);
    EXPECT_FALSE(watch_->watch(memory.range())) << "there is a hole in it";
}

TEST_F(UserfaultWatchTest, ReportsAnOverflowOfChanges) {
    for (int i = 0; i < 300; ++i) {
        const Mapping memory;
        ASSERT_TRUE(watch_->watch(memory.range()));
    }
    std::vector<AddressRange> told_of;
    EXPECT_EQ(changes(told_of), MemoryWatch::ChangesResult::overflow);
    (void)changes(told_of);  // the last may not have been noted before
    EXPECT_THAT(changes(), IsEmpty());
}

TEST_F(UserfaultWatchTest, MissesNoChangeByAnotherThread) {
    for (int round = 0; round < 50; ++round) {
        auto memory = std::make_unique<Mapping>();
        const AddressRange range = memory->range();
        ASSERT_TRUE(watch_->watch(range));
        std::thread other([&] { memory.reset(); });
        other.join();
        EXPECT_THAT(changes(), Not(IsEmpty())) << round;
    }
}

TEST_F(UserfaultWatchTest, AChangeInProgressIsReported) {
    int seen_under_way = 0;
    for (int round = 0; round < 60; ++round) {
        auto memory = std::make_unique<Mapping>();
        const AddressRange range = memory->range();
        void* const place = memory->get();
        ASSERT_TRUE(watch_->watch(range));
        (void)changes();
        std::thread other([&] { memory.reset(); });
        std::array<unsigned char, bytes / 4096> ignored{};
        while (::mincore(place, bytes, ignored.data()) == 0 || errno != ENOMEM) {
        }
        std::vector<AddressRange> of;
        const auto so_far = poll_once(of);
        EXPECT_TRUE(so_far == MemoryWatch::ChangesResult::in_progress || of == std::vector{range}) << round;
        seen_under_way += of.empty() ? 1 : 0;
        other.join();
    }
    RecordProperty("seen_under_way", seen_under_way);
}

// If it hangs, the time limit of the test ends it.
TEST_F(UserfaultWatchTest, UnmappingDoesNotBlockAfterTheWatchEndsDespiteAChild) {
    auto unmapped = std::make_unique<Mapping>();
    const Mapping emptied;
    Mapping moved;
    void* const grown = ::mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* const growth = static_cast<std::byte*>(grown) + bytes;
    ASSERT_EQ(::munmap(growth, bytes), 0);
    const auto begin = reinterpret_cast<std::uintptr_t>(grown);
    for (const AddressRange& each : {emptied.range(), unmapped->range(), moved.range(), {begin, begin + bytes}})
        ASSERT_TRUE(watch_->watch(each));
    ASSERT_EQ(::syscall(SYS_mremap, grown, bytes, 2 * bytes, 0), static_cast<std::intptr_t>(begin));
    void* const to = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(::syscall(SYS_mremap, moved.get(), bytes, 2 * bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to),
              reinterpret_cast<std::intptr_t>(to));
    moved.release();
    const pid_t child = fork_idle();
    ASSERT_GT(child, 0);
    watch_.reset();
    unmapped.reset();
    EXPECT_EQ(::madvise(emptied.get(), bytes, MADV_DONTNEED), 0);
    EXPECT_EQ(::munmap(static_cast<std::byte*>(to) + bytes, bytes), 0) << "by which it grew when it was moved";
    EXPECT_EQ(::munmap(to, bytes), 0);
    EXPECT_EQ(::munmap(growth, bytes), 0);
    EXPECT_EQ(::munmap(grown, bytes), 0);
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(UserfaultWatchTest, UnmappingDoesNotBlockWhileTheWatchEnds) {
    for (int round = 0; round < 50; ++round) {
        auto watch = std::move(UserfaultWatch::open()).value();
        auto memory = std::make_unique<Mapping>();
        ASSERT_TRUE(watch->watch(memory->range()));
        const pid_t child = round % 10 == 0 ? fork_idle() : -1;
        std::thread other([&] { memory.reset(); });
        watch.reset();
        other.join();
        if (child < 0) continue;
        EXPECT_EQ(::kill(child, SIGKILL), 0);
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    }
}

TEST_F(UserfaultWatchTest, DropsRangesAboveTheLimitAndWatchesThemAgain) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t all = (UserfaultWatch::max_watched + 1) * page;
    auto* const at =
        static_cast<std::byte*>(::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(at, MAP_FAILED);
    const auto range = [&](std::size_t i) {
        const auto begin = reinterpret_cast<std::uintptr_t>(at) + i * page;
        return AddressRange{begin, begin + page};
    };
    for (std::size_t i = 1; i < UserfaultWatch::max_watched; ++i) ASSERT_TRUE(watch_->watch(range(i)));
    EXPECT_THAT(changes(), IsEmpty()) << "and one of SetUp";
    ASSERT_TRUE(watch_->watch(range(1))) << "again";
    EXPECT_THAT(changes(), IsEmpty());
    ASSERT_TRUE(watch_->watch(range(0)));
    std::vector<AddressRange> told_of;
    EXPECT_EQ(changes(told_of), MemoryWatch::ChangesResult::overflow);
    ASSERT_EQ(::madvise(at + page, page, MADV_DONTNEED), 0);
    EXPECT_THAT(changes(), IsEmpty()) << "not watched any more";
    ASSERT_EQ(::madvise(at, page, MADV_DONTNEED), 0);
    EXPECT_THAT(changes(), ElementsAre(range(0)));
    ASSERT_EQ(::munmap(at, all), 0);
}

// The handler waits for the thread that reads the events, wherever it interrupts.
TEST_F(UserfaultWatchTest, ASignalHandlerMayUnmapWatchedMemoryDuringChanges) {
    static Mapping* to_unmap = nullptr;
    struct sigaction act {};
    struct sigaction before {};
    act.sa_handler = [](int) {
        if (to_unmap != nullptr) (void)::madvise(to_unmap->get(), bytes, MADV_DONTNEED);
    };
    ASSERT_EQ(::sigaction(SIGUSR2, &act, &before), 0);
    Mapping memory;
    ASSERT_TRUE(watch_->watch(memory.range()));
    to_unmap = &memory;
    std::atomic<int> sent{0};
    const pthread_t looker = ::pthread_self();
    std::thread sender([&] {
        for (int i = 0; i < 100; ++i) {
            ::pthread_kill(looker, SIGUSR2);
            sent.store(i + 1, std::memory_order_release);  // partner: the loop below
        }
    });
    std::vector<AddressRange> of;
    while (sent.load(std::memory_order_acquire) < 100) (void)poll_once(of);  // partner: the sender
    sender.join();
    (void)changes(of);
    ASSERT_EQ(::sigaction(SIGUSR2, &before, nullptr), 0);
    to_unmap = nullptr;
    EXPECT_THAT(of, Not(IsEmpty()));
    EXPECT_THAT(of, Each(memory.range()));
}

TEST_F(UserfaultWatchTest, AWireRegistersRemappedMemoryAgain) {
    test::World world;
    std::shared_ptr<MemoryWatch> watch = std::move(watch_);
    world.start([&](VerbsWire& wire) { wire.use_watch(watch); });
    world.connect();
    auto memory = std::make_unique<Mapping>();
    void* const place = memory->get();
    const auto put = [&] {
        WireContext context;
        const int before = world.verbs->calls["reg_mr"];
        EXPECT_EQ(world.write(0, 0, place, 20000, context), Code::ok);
        world.drive();
        EXPECT_EQ(world.listeners[0].done.at(&context), Code::ok);
        return world.verbs->calls["reg_mr"] - before;
    };
    (void)put();  // the peer's chunks as well
    EXPECT_EQ(put(), 1) << "kept from here on";
    EXPECT_EQ(put(), 0);
    memory.reset();
    memory = std::make_unique<Mapping>(MAP_PRIVATE | MAP_ANONYMOUS, place);
    std::memset(place, 5, bytes);
    auto position = watch->now();
    while (watch->changes(position, [](const AddressRange&) {}) != MemoryWatch::ChangesResult::all) {
    }
    EXPECT_EQ(put(), 1);
    EXPECT_EQ(world.words[1][0], 0x0505050505050505U);
    EXPECT_EQ(put() + put(), 0) << "kept again";
}

TEST(PrivateAnonymousMemory, IsDistinguishedFromOtherMemory) {
    const auto of = [](const void* at, std::size_t length) {
        const auto begin = reinterpret_cast<std::uintptr_t>(at) / 4096 * 4096;
        return AddressRange{begin, begin + length};
    };
    const Mapping memory;
    const Mapping shared(MAP_SHARED | MAP_ANONYMOUS);
    int on_the_stack = 0;
    const auto allocated = std::make_unique<std::byte[]>(100);
    EXPECT_TRUE(is_private_anonymous(memory.range()));
    EXPECT_TRUE(is_private_anonymous(of(&on_the_stack, 4096)));
    EXPECT_TRUE(is_private_anonymous(of(allocated.get(), 4096)));
    EXPECT_FALSE(is_private_anonymous(shared.range()));
    EXPECT_FALSE(is_private_anonymous(of(reinterpret_cast<const void*>(&is_private_anonymous), 4096)));
    EXPECT_FALSE(is_private_anonymous({4096, 8192})) << "nothing is there";
}

}  // namespace
}  // namespace npushmem::verbs
