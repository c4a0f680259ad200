// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/host_table.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::milliseconds short_time{20};
constexpr std::chrono::milliseconds long_time{20000};

HostTableRow row_of(const ProcessId& owner, std::uint64_t group, char mark) {
    HostTableRow row{owner, group, {}};
    row.payload[0] = static_cast<std::byte>(mark);
    return row;
}

class HostTableTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "test-table-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        place = {name, "test"};
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    HostTable locked() {
        auto table = HostTable::lock(place, long_time);
        EXPECT_TRUE(table.ok()) << table.status().message();
        return std::move(table).value();
    }
    std::vector<std::filesystem::path> files() const {
        const std::filesystem::directory_iterator all(place.folder);
        return {begin(all), end(all)};
    }
    // Runs `act` in a child; the child then waits, as it is, until the pipe's other end is closed or it is killed.
    template <class Act>
    pid_t child(Act act) {
        int ready[2];
        int leave[2];
        EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
        EXPECT_EQ(::pipe2(leave, O_CLOEXEC), 0);
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::close(leave[1]);
            [[maybe_unused]] const auto kept = act();
            char byte = 0;
            (void)!::write(ready[1], &byte, 1);
            (void)!::read(leave[0], &byte, 1);
            ::_exit(0);
        }
        char byte = 0;
        ::close(ready[1]);
        EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the child ended early";
        ::close(ready[0]);
        ::close(leave[0]);
        leave_ = leave[1];
        return pid;
    }
    void kill_and_reap(pid_t pid) {
        ::kill(pid, SIGKILL);
        ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
        ::close(leave_);
    }

    HostTablePlace place;
    std::filesystem::path folder_;

private:
    int leave_ = -1;
};

TEST_F(HostTableTest, KeepsRowsOfRunningProcesses) {
    const auto row = row_of(this_process(), 7, 'a');
    ASSERT_TRUE(locked().add(std::vector{row}).ok());
    EXPECT_THAT(locked().rows(), ElementsAre(row));
    EXPECT_THAT(peek_host_tables(place), ElementsAre(row));
}

TEST_F(HostTableTest, RemovesAGroupAndThenItself) {
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 7, 'a'), row_of(this_process(), 8, 'b')}).ok());
    locked().remove(7);
    EXPECT_THAT(locked().rows(), ElementsAre(row_of(this_process(), 8, 'b')));
    locked().remove(8);
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(HostTableTest, RemovesRowsOfADeadProcessAndReusesTheirSpace) {
    const pid_t pid = child([] { return 0; });
    const ProcessId owner = identify_process(pid).value();
    ASSERT_TRUE(locked().add(std::vector{row_of(owner, 1, 'x'), row_of(this_process(), 2, 'y')}).ok());
    EXPECT_THAT(locked().rows(), SizeIs(2));
    kill_and_reap(pid);
    EXPECT_THAT(locked().rows(), ElementsAre(row_of(this_process(), 2, 'y')));
    const auto size = std::filesystem::file_size(files().at(0));
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 3, 'z')}).ok());
    EXPECT_EQ(std::filesystem::file_size(files().at(0)), size);
    EXPECT_THAT(locked().rows(), SizeIs(2));
}

TEST_F(HostTableTest, TreatsAReusedProcessNumberAsAnotherProcess) {
    ProcessId earlier = this_process();
    earlier.start -= 1;
    ASSERT_TRUE(locked().add(std::vector{row_of(earlier, 1, 'x'), row_of(this_process(), 2, 'y')}).ok());
    EXPECT_THAT(locked().rows(), SizeIs(1));
}

TEST_F(HostTableTest, AKilledLockHolderDoesNotBlockOthers) {
    const pid_t pid = child([&] { return locked(); });
    const auto blocked = HostTable::lock(place, short_time);
    ASSERT_FALSE(blocked.ok());
    EXPECT_EQ(blocked.status().code(), Code::timeout);
    EXPECT_THAT(blocked.status().message(),
                AllOf(HasSubstr("process " + std::to_string(pid)), HasSubstr("is it stopped?")));
    kill_and_reap(pid);
    EXPECT_TRUE(HostTable::lock(place, long_time).ok());
}

TEST_F(HostTableTest, AWaiterForARemovedTableCreatesANewOne) {
    // The child waits for the lock while the parent removes the last row, and with it the file.
    auto mine = std::make_unique<HostTable>(locked());
    const pid_t pid = ::fork();
    if (pid == 0) {
        auto table = HostTable::lock(place, long_time);
        ::_exit(table.ok() && std::filesystem::exists(files().at(0)) ? 0 : 1);
    }
    mine.reset();
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

TEST_F(HostTableTest, SkipsCorruptRows) {
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 1, 'a'), row_of(this_process(), 2, 'b')}).ok());
    std::fstream file(files().at(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(HostTable::header_bytes + 60);
    file.put('!');
    file.close();
    EXPECT_THAT(locked().rows(), ElementsAre(row_of(this_process(), 2, 'b')));
}

TEST_F(HostTableTest, RecreatesATruncatedTable) {
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 1, 'a')}).ok());
    std::filesystem::resize_file(files().at(0), 5);
    EXPECT_THAT(locked().rows(), IsEmpty());
}

TEST_F(HostTableTest, RejectsAFileThatIsNotATable) {
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 1, 'a')}).ok());
    std::ofstream(files().at(0)) << std::string(1000, '?');
    const auto table = HostTable::lock(place, short_time);
    ASSERT_FALSE(table.ok());
    EXPECT_THAT(table.status().message(), AllOf(HasSubstr("is not a table"), HasSubstr("remove it")));
    EXPECT_THAT(peek_host_tables(place), IsEmpty());
}

TEST_F(HostTableTest, IgnoresATableThatItsUserDoesNotOwn) {
    ASSERT_TRUE(locked().add(std::vector{row_of(this_process(), 1, 'a')}).ok());
    const auto own = files().at(0);
    auto foreign = own;
    foreign.replace_extension("." + std::to_string(::geteuid() + 1));
    std::filesystem::rename(own, foreign);
    EXPECT_THAT(peek_host_tables(place), IsEmpty());
}

TEST_F(HostTableTest, SweepRemovesATableWithoutLiveProcesses) {
    HostTable::sweep(place);
    EXPECT_TRUE(files().empty()) << "none is made to be swept";
    {
        auto table = locked();
        ASSERT_TRUE(table.add(std::vector{row_of(this_process(), 1, 'a')}).ok());
    }
    HostTable::sweep(place);
    EXPECT_EQ(files().size(), 1U) << "a process in it runs";
    // As if its owner had been killed: the row stays and the table stays unlocked.
    {
        ProcessId owner = this_process();
        owner.start += 1;
        auto table = locked();
        table.remove(1);
        ASSERT_TRUE(table.add(std::vector{row_of(owner, 3, 'c')}).ok());
    }
    HostTable::sweep(place);
    EXPECT_TRUE(files().empty());
}

TEST_F(HostTableTest, ErrorNamesTheFolder) {
    place.folder += "/missing";
    const auto table = HostTable::lock(place, short_time);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.status().code(), Code::system);
    EXPECT_THAT(table.status().message(), HasSubstr("cannot open"));
    EXPECT_THAT(peek_host_tables(place), IsEmpty());
}

TEST_F(HostTableTest, ManyProcessesAtOnceLoseNothing) {
    constexpr int processes = 6;
    constexpr int rounds = 20;
    const ProcessId owner = this_process();
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        bool fine = true;
        for (int round = 0; round < rounds; ++round) {
            auto table = HostTable::lock(place, long_time);
            const auto group = static_cast<std::uint64_t>(i * rounds + round);
            fine = fine && table.ok() && table.value().add(std::vector{row_of(owner, group, 'm')}).ok();
        }
        ::_exit(fine ? 0 : 1);
    }
    for (const pid_t pid : children) {
        int status = 1;
        ASSERT_EQ(::waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    }
    EXPECT_THAT(locked().rows(), SizeIs(processes * rounds));
}

}  // namespace
}  // namespace npushmem
