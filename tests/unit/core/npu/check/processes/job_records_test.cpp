// SPDX-License-Identifier: BSD-3-Clause
// What the checkers of several processes share.
#include "core/npu/check/processes/job_records.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace npushmem::npu::check {
namespace {

// Null where the address space has no room at the address, as under some sanitizers.
std::shared_ptr<JobRecords> make_records() {
    const int memory = memfd_create("records", MFD_CLOEXEC);
    const bool made = ftruncate(memory, static_cast<off_t>(JobRecords::bytes)) == 0 && JobRecords::make(memory);
    auto records = made ? JobRecords::map(memory) : nullptr;
    close(memory);
    return records;
}

// False under qemu-user, where a lock stays taken when its holder ends.
bool has_robust_mutexes() {
    void* locks = nullptr;
    std::size_t bytes = 0;
    return syscall(SYS_get_robust_list, 0, &locks, &bytes) == 0;
}

TEST(JobRecords, AreDisabledIfAProcessEndsWhileItWrites) {
    if (!has_robust_mutexes()) GTEST_SKIP() << "no robust mutexes: a lock stays taken when its holder ends";
    const auto records = make_records();
    if (!records) GTEST_SKIP();
    const auto end_holding = [&](bool holding) {
        const pid_t child = fork();
        if (child == 0) {
            JobLock lock(*records);
            if (!holding) JobLock(std::move(lock));
            _exit(0);
        }
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
        const JobLock lock(*records);
        return records->off();
    };
    EXPECT_FALSE(end_holding(false));
    EXPECT_TRUE(end_holding(true));
    EXPECT_TRUE(end_holding(false));
}

TEST(JobRecords, AThreadMayLockThemTwice) {
    const auto records = make_records();
    if (!records) GTEST_SKIP();
    const JobLock outer(*records);
    const JobLock inner(*records);
    EXPECT_FALSE(records->off());
}

TEST(JobRecords, TheirMemoryIsUsedAgain) {
    const auto records = make_records();
    if (!records) GTEST_SKIP();
    const auto fill = [] {
        SharedVector<std::uint64_t> taken;
        const auto grow = [&] {
            for (;;) taken.push_back(0);
        };
        EXPECT_THROW(grow(), std::bad_alloc);
        return taken.size();
    };
    const std::size_t first = fill();
    EXPECT_GT(first, JobRecords::bytes / 8 / sizeof(std::uint64_t));
    EXPECT_EQ(fill(), first);
    records->clear();
    EXPECT_GE(fill(), first);
}

TEST(JobRecords, CoresAreUsedAgainByTheirPe) {
    const auto records = make_records();
    if (!records) GTEST_SKIP();
    JobContent& content = records->content();
    EXPECT_EQ(content.acquire_cores(0, 4).first, 0U);
    EXPECT_EQ(content.acquire_cores(0, 3).first, 0U);
    EXPECT_EQ(content.acquire_cores(1, 3).first, 4U);
    content.cores_with(2)->running = true;
    EXPECT_EQ(content.acquire_cores(0, 1).first, 7U);
    EXPECT_EQ(content.cores_with(8), nullptr);
    EXPECT_FALSE(content.outdated(1));
    content.cores_with(0)->running = false;
    content.add_ended({0, 1, 2, false, {}});
    EXPECT_FALSE(content.outdated(1));
    EXPECT_TRUE(content.outdated(2));
}

}  // namespace
}  // namespace npushmem::npu::check
