// SPDX-License-Identifier: BSD-3-Clause
// How a segment's memory is committed: the check of the available memory, the lock, the allowance and huge pages.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/host_facts.hpp"
#include "core/base/shared_segment.hpp"
#include "tests/fakes/low_file_limit.hpp"
#include "tests/fakes/qemu_user.hpp"
#include "tests/fakes/sleeping_thread.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t mebi = 1ULL << 20;

std::uint64_t committed_bytes(const SharedSegment& segment) {
    struct stat facts {};
    EXPECT_EQ(::fstat(segment.descriptor(), &facts), 0);
    return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

// The first piece of 64 MiB fits into the file; the second would make it longer than a program may make files.
TEST(SharedSegment, RevertsAPartialCommitUnlessPagesAreRetained) {
    auto segment = SharedSegment::create(64 * mebi, "");
    ASSERT_TRUE(segment.ok());
    LowFileLimit limit(64 * mebi);
    const Status refused = segment.value().commit(0, 128 * mebi);
    const std::uint64_t undone = committed_bytes(segment.value());
    segment.value().retain_pages();
    const Status refused_again = segment.value().commit(0, 128 * mebi);
    const std::uint64_t kept = committed_bytes(segment.value());
    limit.lift();
    EXPECT_THAT(refused.message(), HasSubstr("cannot commit 128 MiB"));
    EXPECT_FALSE(refused_again.ok());
    EXPECT_EQ(undone, 0U);
    EXPECT_EQ(kept, 64 * mebi);
}

TEST(SharedSegment, MoreThanTheMachineHasIsRefusedWithTheNumbers) {
    if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user keeps a record of each page that is mapped";
    auto segment = SharedSegment::create(1ULL << 42, "");
    ASSERT_TRUE(segment.ok());
    const std::uint64_t before = available_memory().available;
    const Status refused = segment.value().commit(0, 1ULL << 42);
    EXPECT_EQ(refused.code(), Code::memory);
    EXPECT_THAT(refused.message(), HasSubstr("4 TiB requested"));
    EXPECT_THAT(refused.message(), HasSubstr("available"));
    // No memory stays committed (apart from other processes' changes meanwhile).
    EXPECT_GT(available_memory().available, before / 2);
}

// When the allowance of many PEs is used up, they all wait for the lock, and its first holder leaves a new allowance.
TEST(SharedSegment, ACommitThatWaitsForTheLockUsesAnAllowanceThatAppears) {
    auto segment = SharedSegment::create(4 * mebi, "");
    ASSERT_TRUE(segment.ok());
    std::uint64_t allowance = 0;
    segment.value().share_allowance(allowance);
    auto other = SharedSegment::attach(segment.value().handle());
    ASSERT_TRUE(other.ok());
    ASSERT_EQ(::flock(other.value().descriptor(), LOCK_EX), 0);
    Status late;
    {
        std::atomic<pid_t> waiter{0};
        const std::jthread waiting([&] {
            waiter = static_cast<pid_t>(::syscall(SYS_gettid));
            late = segment.value().commit(0, 4096, std::chrono::seconds(10));
        });
        while (waiter == 0 || !is_asleep(waiter)) std::this_thread::yield();
        std::atomic_ref(allowance).store(4096);
    }
    EXPECT_TRUE(late.ok()) << late.message();
    EXPECT_EQ(committed_bytes(segment.value()), 4096U);
    EXPECT_EQ(allowance, 0U);
}

// Like a process stopped during a commit: another open file of the same memory holds the lock.
TEST(SharedSegment, CommitTimesOutWhenAnotherProcessHoldsTheLock) {
    auto segment = SharedSegment::create(4 * mebi, "");
    ASSERT_TRUE(segment.ok());
    auto other = SharedSegment::attach(segment.value().handle());
    ASSERT_TRUE(other.ok());
    ASSERT_EQ(::flock(other.value().descriptor(), LOCK_EX), 0);
    const Status late = segment.value().commit(0, mebi, std::chrono::milliseconds(10));
    EXPECT_EQ(late.code(), Code::timeout);
    EXPECT_THAT(late.message(), HasSubstr("is it stopped?"));
    ASSERT_EQ(::flock(other.value().descriptor(), LOCK_UN), 0);
    EXPECT_TRUE(segment.value().commit(0, mebi, std::chrono::milliseconds(10)).ok());
}

// Like a PE that commits much memory slowly: the file grows while another PE waits for the lock.
TEST(SharedSegment, ACommitWaitsForALockWhoseHolderProceeds) {
    auto segment = SharedSegment::create(64 * mebi, "");
    ASSERT_TRUE(segment.ok());
    auto other = SharedSegment::attach(segment.value().handle());
    ASSERT_TRUE(other.ok());
    constexpr std::chrono::milliseconds limit{1000};
    ASSERT_EQ(::flock(other.value().descriptor(), LOCK_EX), 0);
    std::jthread holder([file = other.value().descriptor(), limit] {
        constexpr off_t pages = 62 * mebi / 4096;
        const auto end = std::chrono::steady_clock::now() + limit * 3 / 2;
        for (off_t page = 0; std::chrono::steady_clock::now() < end; ++page) {
            (void)::fallocate(file, 0, page % pages * 4096, 4096);
            // However fast the machine is, there is something to commit.
            if (page % pages == pages - 1)
                (void)::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, pages * 4096);
        }
        (void)::flock(file, LOCK_UN);
    });
    const Status done = segment.value().commit(63 * mebi, 4096, limit);
    EXPECT_TRUE(done.ok()) << done.message();
}

// The lock shows which commits check the available memory.
TEST(SharedSegment, OneCheckAllowsFurtherSmallCommitsOfAllProcesses) {
    auto first = SharedSegment::create(1ULL << 32, "");
    ASSERT_TRUE(first.ok());
    auto second = SharedSegment::attach(first.value().handle());
    auto locking = SharedSegment::attach(first.value().handle());
    ASSERT_TRUE(second.ok() && locking.ok());
    std::uint64_t allowance = 0;
    first.value().share_allowance(allowance);
    second.value().share_allowance(allowance);
    ASSERT_TRUE(first.value().commit(0, 4096).ok());
    const std::uint64_t allowed = allowance;
    const std::uint64_t reserve = std::min<std::uint64_t>(256 * mebi, available_memory().total / 50);
    const auto is_renewed = ::testing::AnyOf(reserve, reserve / 4);  // by what is available at the moment
    EXPECT_THAT(allowed, is_renewed);
    ASSERT_EQ(::flock(locking.value().descriptor(), LOCK_EX), 0);
    EXPECT_TRUE(first.value().commit(4096, 4096).ok());
    EXPECT_TRUE(second.value().commit(8192, 8192).ok());
    EXPECT_EQ(allowance, allowed - 12288);
    const auto is_checked = [&](std::uint64_t bytes) {
        return second.value().commit(mebi, bytes, std::chrono::milliseconds(1)).code() == Code::timeout;
    };
    EXPECT_TRUE(is_checked(mebi + 4096)) << "it is large";
    allowance = 4096;
    EXPECT_TRUE(is_checked(8192)) << "it is more than is allowed";
    EXPECT_EQ(allowance, 4096U);
    ASSERT_EQ(::flock(locking.value().descriptor(), LOCK_UN), 0);
    EXPECT_TRUE(second.value().commit(mebi, 8192).ok());
    EXPECT_THAT(allowance, is_renewed) << "by the check";
}

TEST(SharedSegment, ACheckThatFailsEndsTheAllowance) {
    if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user keeps a record of each page that is mapped";
    auto segment = SharedSegment::create(1ULL << 42, "");
    ASSERT_TRUE(segment.ok());
    std::uint64_t allowance = 4096;
    segment.value().share_allowance(allowance);
    EXPECT_EQ(segment.value().commit(0, 1ULL << 42).code(), Code::memory);
    EXPECT_EQ(allowance, 0U);
}

TEST(CommitAllowance, IsTheReserveWhereMuchIsLeft) {
    EXPECT_EQ(commit_allowance(16 * 400, 400), 400U);
    EXPECT_EQ(commit_allowance(16 * 400 - 1, 400), 100U);
    EXPECT_EQ(commit_allowance(400, 400), 100U);
}

// Sum of a field of /proc/self/smaps, in bytes, over the parts of the segment's mapping.
std::uint64_t mapped_bytes(const SharedSegment& segment, const std::string& field) {
    std::ifstream file("/proc/self/smaps");
    const auto base = reinterpret_cast<std::uintptr_t>(segment.base());
    bool inside = false;
    std::uint64_t sum = 0;
    for (std::string line; std::getline(file, line);) {
        std::uintptr_t begin = 0;
        std::uint64_t kibibytes = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-", &begin) == 1 && line.find('-') < line.find(' '))
            inside = begin - base < segment.bytes();
        else if (inside && std::sscanf(line.c_str(), (field + ": %" SCNu64).c_str(), &kibibytes) == 1)
            sum += kibibytes * 1024;
    }
    return sum;
}

class HugePages : public ::testing::Test {
protected:
    void SetUp() override {
        if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user reports success of advice that it does not know";
        ASSERT_TRUE(made_.ok()) << made_.status().message();
        segment_.use_huge_pages();
        ASSERT_TRUE(segment_.commit(0, huge_page_bytes).ok());
        if (segment_.huge_bytes() == 0) GTEST_SKIP() << "this kernel has no huge page for shared memory";
    }

    Result<SharedSegment> made_ = SharedSegment::create(128 * mebi, "");
    SharedSegment& segment_ = made_.value();
};

// The range begins and ends within huge pages and spans two of the pieces that are committed one after another.
TEST_F(HugePages, BackEachWholeOneOfARangeInEveryMapping) {
    const std::uint64_t begin = 3 * mebi;
    const std::uint64_t bytes = 66 * mebi;
    ASSERT_TRUE(segment_.commit(begin, bytes).ok());
    if (segment_.huge_bytes() < huge_page_bytes + 64 * mebi) GTEST_SKIP() << "too few huge pages are free";
    EXPECT_EQ(segment_.huge_bytes(), huge_page_bytes + 64 * mebi);
    EXPECT_EQ(committed_bytes(segment_), huge_page_bytes + bytes);
    auto other = SharedSegment::attach(segment_.handle());
    ASSERT_TRUE(other.ok());
    std::memset(other.value().base() + begin, 1, bytes);
    EXPECT_EQ(mapped_bytes(other.value(), "ShmemPmdMapped"), 64 * mebi);
    EXPECT_EQ(segment_.base()[begin + bytes - 1], std::byte{1});
}

TEST_F(HugePages, ReadAsZerosAfterAPartOfThemWasDecommitted) {
    std::memset(segment_.base(), 1, huge_page_bytes);
    segment_.decommit(mebi, mebi);
    ASSERT_TRUE(segment_.commit(mebi, mebi).ok());
    EXPECT_EQ(segment_.base()[mebi - 1], std::byte{1});
    EXPECT_TRUE(std::all_of(segment_.base() + mebi, segment_.base() + 2 * mebi,
                            [](std::byte value) { return value == std::byte{0}; }));
}

TEST_F(HugePages, AreLeftOutOfRangesThatHoldNone) {
    ASSERT_TRUE(segment_.commit(3 * mebi, 2 * mebi).ok());
    EXPECT_EQ(segment_.huge_bytes(), huge_page_bytes);
    EXPECT_EQ(committed_bytes(segment_), 4 * mebi);
}

// The second piece of 64 MiB would make the file longer than a program may make files: its huge pages are refused when
// those of the first piece exist.
TEST_F(HugePages, AreTakenBackWhenACommitFailsUnlessPagesAreRetained) {
    auto small = SharedSegment::create(64 * mebi, "");
    ASSERT_TRUE(small.ok());
    small.value().use_huge_pages();
    LowFileLimit limit(64 * mebi);
    const Status refused = small.value().commit(60 * mebi, 8 * mebi);
    const std::uint64_t undone = committed_bytes(small.value());
    small.value().retain_pages();
    const Status refused_again = small.value().commit(60 * mebi, 8 * mebi);
    const std::uint64_t kept = committed_bytes(small.value());
    const Status rest = small.value().commit(60 * mebi, 4 * mebi);
    limit.lift();
    EXPECT_THAT(refused.message(), HasSubstr("cannot commit 8 MiB"));
    EXPECT_EQ(undone, 0U);
    EXPECT_FALSE(refused_again.ok());
    EXPECT_EQ(kept, 4 * mebi);
    EXPECT_TRUE(rest.ok()) << rest.message();
    EXPECT_EQ(committed_bytes(small.value()), 4 * mebi);
}

TEST(SharedSegment, CommitsHugePagesOnRequestOnly) {
    auto segment = SharedSegment::create(8 * mebi, "");
    ASSERT_TRUE(segment.ok());
    ASSERT_TRUE(segment.value().commit(0, 8 * mebi).ok());
    EXPECT_EQ(segment.value().huge_bytes(), 0U);
}

}  // namespace
}  // namespace npushmem
