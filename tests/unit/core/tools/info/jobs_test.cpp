// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/jobs.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/host_memory.hpp"

namespace npushmem::info {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t slice_bytes = 1U << 20;

// The segment of a host with PEs 4 and 5 of a job of six; this process is both, and PE 0.
class JobsTest : public ::testing::Test {
protected:
    JobsTest() : memory_(HostMemory::create(slice_bytes, 2, "").value()) {
        for (const int local : {0, 1}) {
            EXPECT_TRUE(memory_.commit(local, 0, control_bytes).ok());
            ControlBlock& block = control(local);
            block.magic = control_magic;
            block.version = control_version;
            block.pe = 4 + local;
            block.slice_bytes = slice_bytes;
            block.process = getpid();
            block.process_start = this_process().start;
            block.npes = 6;
            block.first_process = getpid();
            block.first_process_start = this_process().start;
            block.state = static_cast<std::uint32_t>(PeState::running);
            block.progress.world_calls = 11;
        }
    }

    ControlBlock& control(int local) { return *reinterpret_cast<ControlBlock*>(memory_.slice(local)); }
    void wait(int local, const char* call, std::uint64_t number) {
        PeWait wait;
        wait.since = 5'000'000'000;
        wait.call_number = number;
        set_text(wait.call, call);
        set_text(wait.what, "a barrier");
        set_text(wait.team, "world");
        control(local).progress.wait.write(wait);
    }
    [[nodiscard]] int descriptor() const { return memory_.handle().descriptor; }
    // Reads the segment as another process does.
    Status read() { return read_segment(descriptor(), report_.jobs); }
    void overwrite(std::uint64_t offset, std::uint32_t value) const {
        EXPECT_EQ(pwrite(descriptor(), &value, sizeof value, static_cast<off_t>(offset)), sizeof value);
    }

    HostMemory memory_;
    JobsReport report_;
};

TEST_F(JobsTest, ShowsWhatEachPeWaitsFor) {
    wait(0, "npushmem_barrier_all", 12);
    ASSERT_TRUE(read().ok());
    report_.now = 66'000'000'000;
    const std::string text = describe(report_);
    EXPECT_THAT(text, HasSubstr("Job of 6 PEs: "));
    EXPECT_THAT(text, HasSubstr("61.0 s  npushmem_barrier_all #12 of the team world  a barrier"));
    EXPECT_THAT(text, HasSubstr("running"));
    EXPECT_THAT(text, HasSubstr("PE 5 has not entered npushmem_barrier_all #12 of the team world"));
    EXPECT_THAT(text, HasSubstr("PEs 0-3 run on other hosts or have not started"));
}

TEST_F(JobsTest, ShowsAPeThatWasKilledWhileItRecordedAWait) {
    wait(0, "npushmem_barrier_all", 12);
    wait(1, "npushmem_barrier_all", 12);
    *reinterpret_cast<std::uint64_t*>(&control(0).progress.wait) = 3;  // the record's number, odd during a write
    ASSERT_TRUE(read().ok());
    ASSERT_THAT(report_.jobs, SizeIs(1));
    ASSERT_THAT(report_.jobs[0].pes, SizeIs(2));
    EXPECT_FALSE(report_.jobs[0].pes[0].progress.wait);
    EXPECT_TRUE(report_.jobs[0].pes[1].progress.wait);
}

TEST_F(JobsTest, ShowsPesInDifferentCalls) {
    wait(0, "npushmem_barrier_all", 12);
    wait(1, "npushmem_int_broadcast", 12);
    ASSERT_TRUE(read().ok());
    ASSERT_THAT(report_.jobs, SizeIs(1));
    EXPECT_THAT(disagreements_of(report_.jobs[0]), ElementsAre("PE 5 is in npushmem_int_broadcast #12 of the team "
                                                               "world, PE 4 is in npushmem_barrier_all #12"));
}

TEST_F(JobsTest, JoinsTheSegmentsOfEmulatedHosts) {
    ASSERT_TRUE(read().ok());
    ASSERT_TRUE(read().ok());
    ASSERT_THAT(report_.jobs, SizeIs(1));
    EXPECT_THAT(report_.jobs[0].pes, SizeIs(4));
    control(0).first_process_start += 1;  // another job: an earlier process with this number
    ASSERT_TRUE(read().ok());
    EXPECT_THAT(report_.jobs, SizeIs(2));
}

TEST_F(JobsTest, APeWhoseProcessHasEndedIsNamed) {
    control(0).process_start += 1;  // the number belongs to another process now
    ASSERT_TRUE(read().ok());
    EXPECT_EQ(state_text(report_.jobs[0].pes[0].progress), "ended");
    EXPECT_EQ(state_text(report_.jobs[0].pes[1].progress), "running");
}

TEST_F(JobsTest, ReplacesBytesThatATerminalWouldObey) {
    wait(0, "\033[2Jcall", 12);
    ASSERT_TRUE(read().ok());
    EXPECT_THAT(describe(report_), HasSubstr("?[2Jcall #12"));
}

TEST_F(JobsTest, RefusesAnotherVersion) {
    overwrite(8, control_version + 1);
    EXPECT_THAT(read().message(), HasSubstr("its layout has version"));
}

TEST_F(JobsTest, RefusesSizesThatCannotBeTrue) {
    for (const std::uint32_t pes : {0U, 3U, 1000U, 0xffffffffU}) {
        overwrite(12, pes);
        EXPECT_THAT(read().message(), HasSubstr("its header describes")) << pes;
    }
    overwrite(12, 2);
    overwrite(16, 64);  // the slices are smaller than a control block
    EXPECT_THAT(read().message(), HasSubstr("its header describes"));
    EXPECT_TRUE(report_.jobs.empty());
}

TEST_F(JobsTest, RefusesAMalformedControlBlock) {
    control(1).pe = 6;
    EXPECT_THAT(read().message(), HasSubstr("its control block of PE 1 is malformed"));
}

TEST_F(JobsTest, IgnoresOtherFiles) {
    const FileDescriptor file(memfd_create("npushmem-test", MFD_CLOEXEC));
    EXPECT_TRUE(read_segment(file.get(), report_.jobs).ok());
    EXPECT_EQ(pwrite(file.get(), "something else, longer than the header is", 41, 0), 41);
    EXPECT_EQ(ftruncate(file.get(), 4096), 0);
    EXPECT_TRUE(read_segment(file.get(), report_.jobs).ok());
    EXPECT_TRUE(report_.jobs.empty());
    EXPECT_THAT(describe(report_), HasSubstr("No running job"));
}

// The segment of this test is one of this process' open files.
TEST_F(JobsTest, FindsTheSegmentsOfRunningProcesses) {
    wait(0, "npushmem_barrier_all", 12);
    const JobsReport found = find_jobs();
    EXPECT_THAT(describe(found), AllOf(HasSubstr("npushmem_barrier_all #12"), HasSubstr(std::to_string(getpid()))));
}

}  // namespace

}  // namespace npushmem::info
