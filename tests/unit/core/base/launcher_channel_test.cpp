// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/launcher_channel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace npushmem {
namespace {

constexpr auto line = LauncherRecord::Kind::line;

std::string body_of(const LauncherRecord& record) {
    std::string bytes = record.encode();
    EXPECT_EQ(bytes.back(), LauncherRecord::end);
    bytes.pop_back();
    return bytes;
}

TEST(LauncherRecord, IsDecodedAsItWasEncoded) {
    for (const LauncherRecord& record :
         {LauncherRecord{line, 3, "pe 3/8", "error api: two\nlines, \xc3\xa4"}, LauncherRecord{line, -1, "", ""},
          LauncherRecord{LauncherRecord::Kind::message, -1, "", "PE 1 was killed"},
          LauncherRecord{LauncherRecord::Kind::ended, 5, "", "PE 5 exited with status 0"},
          LauncherRecord{LauncherRecord::Kind::request, 4, "", "failed 5 1"},
          LauncherRecord{LauncherRecord::Kind::outcome, 4, "", "137 "},
          LauncherRecord{LauncherRecord::Kind::exits_flushed, 4, "", ""},
          LauncherRecord{LauncherRecord::Kind::failed_calls, 1048575, "", "17"}})
        EXPECT_EQ(LauncherRecord::decode(body_of(record)), record);
}

TEST(LauncherRecord, ReplacesDelimitersInTextByBlanks) {
    const auto read = LauncherRecord::decode(body_of({line, 0, "a\x02z", std::string("b\x1f\0c", 4)}));
    EXPECT_EQ(read, (LauncherRecord{line, 0, "a z", "b  c"}));
}

TEST(LauncherRecord, IsDecodedAfterATruncatedRecord) {
    const LauncherRecord record{line, 2, "pe 2/4", "whole"};
    EXPECT_EQ(LauncherRecord::decode(body_of({line, 1, "pe 1/4", "cut off"}).substr(0, 12) + body_of(record)), record);
}

TEST(LauncherRecord, RejectsOtherBytes) {
    for (const char* bytes : {"", "l3", "\x02", "\x02l3", "\x02l3\x1fpe", "\x02x3\x1f\x1ftext"})
        EXPECT_EQ(LauncherRecord::decode(bytes), std::nullopt) << bytes;
}

std::string place_of(int descriptor, dev_t device, ino_t inode) {
    return std::to_string(descriptor) + ":" + std::to_string(device) + ":" + std::to_string(inode);
}

// Another thread may change the environment later.
TEST(LauncherChannel, ReadsTheEnvironmentOnce) {
    const char* const set = std::getenv("NPUSHMEM_PE");
    const std::string before = set == nullptr ? "" : set;
    const int pe = LauncherChannel::own_pe();
    ASSERT_EQ(::setenv("NPUSHMEM_PE", std::to_string(pe + 1).c_str(), 1), 0);
    EXPECT_EQ(LauncherChannel::own_pe(), pe);
    (void)(set == nullptr ? ::unsetenv("NPUSHMEM_PE") : ::setenv("NPUSHMEM_PE", before.c_str(), 1));
}

TEST(LauncherChannel, ReadsItsDescriptionOnce) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
    struct stat found {};
    ASSERT_EQ(::fstat(pipe[1], &found), 0);
    const char* const set = std::getenv("NPUSHMEM_LAUNCHER_FD");
    const std::string before = set == nullptr ? "" : set;
    (void)LauncherChannel::of_process();
    const std::string place = place_of(pipe[1], found.st_dev, found.st_ino);
    ASSERT_EQ(::setenv("NPUSHMEM_LAUNCHER_FD", place.c_str(), 1), 0);
    EXPECT_FALSE(LauncherChannel::of_process().request("exit 0 1\n"));
    (void)(set == nullptr ? ::unsetenv("NPUSHMEM_LAUNCHER_FD") : ::setenv("NPUSHMEM_LAUNCHER_FD", before.c_str(), 1));
    ::close(pipe[0]);
    ::close(pipe[1]);
}

// The channel does not write to a descriptor that was closed or reused.
TEST(LauncherChannel, TakesNothingWhereItsDescriptionDoesNotFit) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
    struct stat found {};
    ASSERT_EQ(::fstat(pipe[1], &found), 0);
    const std::string good = place_of(pipe[1], found.st_dev, found.st_ino);
    const std::string other = place_of(pipe[1], found.st_dev, found.st_ino + 1);
    const std::string elsewhere = place_of(pipe[1], found.st_dev + 1, found.st_ino);
    for (const std::string& description :
         {std::string(), std::string(":"), std::string("x:y:z"), other, elsewhere, other + "," + good + ",0,1:1",
          std::string("99999999999:1:1"), std::string("-1:-1:-1")}) {
        const LauncherChannel channel(description);
        EXPECT_FALSE(channel.request("exit 0 1\n")) << description;
        EXPECT_FALSE(channel.append({line, 0, "", "lost"})) << description;
        EXPECT_EQ(channel.map_failed_calls(), nullptr) << description;
    }
    char byte = 0;
    EXPECT_EQ(::read(pipe[0], &byte, 1), -1) << "nothing was written";
    const LauncherChannel requests_only(good);
    EXPECT_TRUE(requests_only.request("exit 0 1\n"));
    EXPECT_FALSE(requests_only.append({line, 0, "", "there is no log"}));
    EXPECT_FALSE(requests_only.has_launcher_stderr());
    ::close(pipe[0]);
    ::close(pipe[1]);
}

// Inodes of different file systems may be equal.
TEST(LauncherChannel, TakesNoFileOfAnotherDeviceForItsLog) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
    const int log = ::memfd_create("log", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(log, ::sysconf(_SC_PAGESIZE)), 0);
    struct stat requests {};
    struct stat records {};
    ASSERT_EQ(::fstat(pipe[1], &requests), 0);
    ASSERT_EQ(::fstat(log, &records), 0);
    for (const bool same : {true, false}) {
        const LauncherChannel channel(place_of(pipe[1], requests.st_dev, requests.st_ino) + "," +
                                      place_of(log, records.st_dev + (same ? 0 : 1), records.st_ino) + ",0,1:1");
        EXPECT_EQ(channel.map_failed_calls() != nullptr, same);
        EXPECT_EQ(channel.append({line, 0, "", "text"}), same);
    }
    for (const int descriptor : {pipe[0], pipe[1], log}) ::close(descriptor);
}

// A program may close all descriptors, as a daemon does.
TEST(LauncherChannel, TheCounterRemainsWhenTheLogIsClosed) {
    const int log = ::memfd_create("log", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(log, ::sysconf(_SC_PAGESIZE)), 0);
    struct stat found {};
    ASSERT_EQ(::fstat(log, &found), 0);
    const int launchers = ::dup(log);
    const LauncherChannel channel("," + place_of(log, found.st_dev, found.st_ino) + ",8,1:1");
    std::int64_t* const counter = channel.map_failed_calls();
    ASSERT_NE(counter, nullptr);
    ::close(log);
    *counter += 3;
    std::int64_t counted = 0;
    EXPECT_EQ(::pread(launchers, &counted, sizeof counted, 8), static_cast<ssize_t>(sizeof counted));
    EXPECT_EQ(counted, 3);
    ::close(launchers);
}

}  // namespace
}  // namespace npushmem
