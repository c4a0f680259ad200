// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/shared_segment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/fakes/open_descriptors.hpp"
#include "tests/fakes/qemu_user.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t mebibyte = 1ULL << 20;

// More memory than any machine has. The thread sanitizer leaves a program 1.5 TiB of addresses, and the kernel's first
// mapping is at a random place in 1 TiB of them, so only a third is certain to be free.
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t vast = 256ULL << 30;
#else
constexpr std::uint64_t vast = 1ULL << 40;
#endif

TEST(SharedSegment, TwoMappingsShowTheSameBytes) {
    auto first = SharedSegment::create(8 * mebibyte, "");
    ASSERT_TRUE(first.ok()) << first.status().message();
    ASSERT_TRUE(first.value().commit(mebibyte, 4096).ok());
    auto second = SharedSegment::attach(first.value().handle());
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_NE(first.value().base(), second.value().base());
    std::memcpy(first.value().base() + mebibyte, "hello", 6);
    EXPECT_STREQ(reinterpret_cast<char*>(second.value().base() + mebibyte), "hello");
}

TEST(SharedSegment, IsAlignedInEveryProcess) {
    auto segment = SharedSegment::create(3 * mebibyte, "");
    ASSERT_TRUE(segment.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.value().base()) % SharedSegment::alignment, 0U);
}

TEST(SharedSegment, ShowsWhichSlotsOthersHold) {
    auto first = std::make_unique<SharedSegment>(SharedSegment::create(mebibyte, "").value());
    auto second = SharedSegment::attach(first->handle());
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(second.value().is_held(3));
    ASSERT_TRUE(first->hold(3).ok());
    EXPECT_TRUE(second.value().is_held(3));
    EXPECT_FALSE(second.value().is_held(2));
    EXPECT_FALSE(second.value().is_held(4));
    EXPECT_FALSE(second.value().hold(3).ok()) << "another one holds it";
    EXPECT_TRUE(second.value().commit(0, 4096).ok()) << "commits need another lock";
    first.reset();
    EXPECT_FALSE(second.value().is_held(3));
}

TEST(SharedSegment, EndsAProcessesHoldWithIt) {
    auto segment = SharedSegment::create(mebibyte, "");
    ASSERT_TRUE(segment.ok());
    std::array<int, 2> ready{};
    std::array<int, 2> end{};
    ASSERT_TRUE(::pipe(ready.data()) == 0 && ::pipe(end.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto own = SharedSegment::attach(segment.value().handle());
        char byte = own.ok() && own.value().hold(1).ok() ? 'y' : 'n';
        (void)!::write(ready[1], &byte, 1);
        (void)!::read(end[0], &byte, 1);
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    EXPECT_TRUE(segment.value().is_held(1));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    // A zombie holds nothing.
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(segment.value().is_held(1));
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
}

// A child of fork has its parent's mapping and open files.
TEST(SharedSegment, AChildOfForkGivesItsParentsHoldUp) {
    auto watching = SharedSegment::create(mebibyte, "");
    ASSERT_TRUE(watching.ok());
    std::array<int, 2> end{};
    ASSERT_EQ(::pipe(end.data()), 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
        auto own = SharedSegment::attach(watching.value().handle());
        if (!own.ok() || !own.value().hold(1).ok()) ::_exit(1);
        std::array<int, 2> released{};
        char byte = 0;
        if (::pipe(released.data()) != 0) ::_exit(2);
        if (::fork() == 0) {
            own.value().release_in_child();
            ::close(end[1]);  // so that the test's end is this child's
            (void)!::write(released[1], &byte, 1);
            (void)!::read(end[0], &byte, 1);
            ::_exit(0);
        }
        (void)!::read(released[0], &byte, 1);
        ::_exit(watching.value().is_held(1) ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(parent, &status, 0), parent);
    EXPECT_EQ(status, 0) << "the parent holds it after its child has given it up";
    EXPECT_FALSE(watching.value().is_held(1)) << "the child, which lives, holds nothing";
    for (const int fd : end) ::close(fd);
}

// A descriptor from another process: not the file that its sender has open, whose locks it would share.
TEST(SharedSegment, IsAttachedByADescriptorToo) {
    auto first = SharedSegment::create(mebibyte, "");
    ASSERT_TRUE(first.ok() && first.value().commit(0, 4096).ok());
    SegmentHandle handle = first.value().handle();
    handle.process = 0;
    const FileDescriptor received(::dup(first.value().descriptor()));
    auto second = SharedSegment::attach(handle, received);
    ASSERT_TRUE(second.ok()) << second.status().message();
    std::memcpy(first.value().base(), "hello", 6);
    EXPECT_STREQ(reinterpret_cast<char*>(second.value().base()), "hello");
    ASSERT_TRUE(first.value().hold(0).ok());
    EXPECT_TRUE(second.value().is_held(0));
    handle.inode += 1;
    EXPECT_EQ(SharedSegment::attach(handle, received).status().code(), Code::protocol);
}

TEST(SharedSegment, AddressSpaceCostsNothing) {
    if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user keeps a record of each page that is mapped";
    auto segment = SharedSegment::create(vast, "");
    ASSERT_TRUE(segment.ok()) << segment.status().message();
    EXPECT_TRUE(segment.value().commit(vast - 4096, 4096).ok());
}

TEST(SharedSegment, DecommittedMemoryReadsAsZeros) {
    auto segment = SharedSegment::create(4 * mebibyte, "");
    ASSERT_TRUE(segment.ok());
    ASSERT_TRUE(segment.value().commit(0, mebibyte).ok());
    segment.value().base()[10] = std::byte{7};
    segment.value().decommit(0, mebibyte);
    ASSERT_TRUE(segment.value().commit(0, mebibyte).ok());
    EXPECT_EQ(segment.value().base()[10], std::byte{0});
}

TEST(SharedSegment, LeavesNoNameAndNoDescriptor) {
    const std::size_t before = open_descriptors();
    {
        auto segment = SharedSegment::create(mebibyte, "");
        ASSERT_TRUE(segment.ok());
        auto other = SharedSegment::attach(segment.value().handle());
        ASSERT_TRUE(other.ok());
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(SharedSegment, ErrorNamesTheUnusableFolder) {
    const auto refused = SharedSegment::create(mebibyte, "/proc");
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(refused.status().message(), HasSubstr("an unnamed file in '/proc'"));
}

TEST(SharedSegment, LeavesNoNameInItsFolder) {
    const auto folder = std::filesystem::temp_directory_path() / ("npushmem-segment-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    {
        auto segment = SharedSegment::create(mebibyte, folder.string());
        ASSERT_TRUE(segment.ok()) << segment.status().message();
        EXPECT_TRUE(segment.value().commit(0, 4096).ok());
        EXPECT_TRUE(std::filesystem::is_empty(folder));
    }
    std::filesystem::remove(folder);
}

TEST(SharedSegment, PagesAreReplacedByThoseOfAFile) {
    auto segment = SharedSegment::create(mebibyte, "");
    ASSERT_TRUE(segment.ok()) << segment.status().message();
    ASSERT_TRUE(segment.value().commit(0, mebibyte).ok());
    const auto page = static_cast<std::ptrdiff_t>(page_bytes());
    const auto file = open_shared_file(segment.value().handle());
    ASSERT_TRUE(file.ok()) << file.status().message();
    std::byte* const base = segment.value().base();
    base[0] = std::byte{1};
    base[3 * page] = std::byte{3};
    ASSERT_TRUE(map_over(base, page_bytes(), file.value().get(), 3 * page_bytes()).ok());
    EXPECT_EQ(base[0], std::byte{3});
    base[1] = std::byte{9};
    EXPECT_EQ(base[3 * page + 1], std::byte{9});
    ASSERT_TRUE(map_over(base, page_bytes(), segment.value().descriptor(), 0).ok());
    EXPECT_EQ(base[0], std::byte{1});
    const Status refused = map_over(base + 8, page_bytes(), file.value().get(), 0);
    EXPECT_THAT(refused.message(), HasSubstr("cannot map"));
    EXPECT_EQ(base[0], std::byte{1});
}

TEST(SharedSegment, AttachRejectsAHandleOfOtherMemory) {
    auto segment = SharedSegment::create(mebibyte, "");
    ASSERT_TRUE(segment.ok());
    SegmentHandle handle = segment.value().handle();
    ++handle.inode;
    EXPECT_THAT(SharedSegment::attach(handle).status().message(), HasSubstr("is not the expected memory"));
    handle.descriptor = 100000;
    EXPECT_THAT(SharedSegment::attach(handle).status().message(), HasSubstr("cannot open the memory of process"));
}

void limit_file_size() {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
}

[[noreturn]] void print_and_exit(const Result<SharedSegment>& refused) {
    std::fprintf(stderr, "%s", refused.status().message().c_str());
    std::_Exit(refused.ok() ? 1 : 0);
}

[[noreturn]] void make_under_a_file_limit() {
    limit_file_size();
    print_and_exit(SharedSegment::create(mebibyte, ""));
}

// The process that made the segment has no limit.
[[noreturn]] void attach_under_a_file_limit() {
    const auto segment = SharedSegment::create(mebibyte, "");
    limit_file_size();
    print_and_exit(SharedSegment::attach(segment.value().handle()));
}

// In a child, because only privileged processes can raise the limit again.
TEST(SharedSegmentDeathTest, AFileSizeLimitIsAnErrorNotASignal) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(make_under_a_file_limit(), ::testing::ExitedWithCode(0), "ulimit -f");
    EXPECT_EXIT(attach_under_a_file_limit(), ::testing::ExitedWithCode(0), "ulimit -f");
}

// Leaves the process `bytes` of private memory in one piece: what an exhausted heap has left depends on its history.
void leave_private_memory(std::size_t bytes) {
    constexpr std::size_t more = 2048;  // a piece this large is not kept for requests of its own size only
    void* volatile left = std::malloc(more + bytes);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    void* volatile taken = nullptr;  // volatile: an optimiser may leave out calls of malloc with no effect
    for (std::size_t size = mebibyte; size >= 16; size /= 2) {
        do {
            taken = std::malloc(size);
        } while (taken != nullptr);
    }
    std::free(left);
    taken = std::malloc(more);
}

[[noreturn]] void commit_with_private_memory(std::size_t bytes) {
    auto segment = SharedSegment::create(mebibyte, "");
    leave_private_memory(bytes);
    print_and_exit(segment.value().commit(0, 4096, std::chrono::seconds(10)));
}

TEST(SharedSegmentDeathTest, CommittingWithoutPrivateMemoryIsAnErrorNotAnException) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers end a program whose allocation fails";
#endif
    if (fakes::runs_under_qemu_user()) GTEST_SKIP() << "qemu-user does not apply RLIMIT_AS";
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    // Suffices for the error only; for the text of /proc/meminfo, not for its copies.
    for (const std::size_t bytes : {600, 1600})
        EXPECT_EXIT(commit_with_private_memory(bytes), ::testing::ExitedWithCode(0), "cannot allocate private memory")
            << bytes;
}

}  // namespace
}  // namespace npushmem
