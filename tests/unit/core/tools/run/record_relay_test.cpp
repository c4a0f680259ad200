// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/record_relay.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <string_view>

namespace npushmem::run {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LauncherRecord record_of(const std::string& text) { return {LauncherRecord::Kind::line, 3, "pe 3/8", text}; }

TEST(RecordFrames, MarksAreUniqueAndUnprintable) {
    EXPECT_NE(make_mark(), make_mark());
    EXPECT_EQ(make_mark().size(), 33U);
    EXPECT_LT(make_mark().front(), ' ');
}

TEST(RecordFrames, RecordsArriveWhateverPiecesTheyComeIn) {
    const std::string mark = make_mark();
    const auto records = {record_of("100% sure\nand\ttwo lines"), record_of(std::string(20000, '%')), record_of("")};
    std::string stream = "before ";
    for (const auto& record : records) stream += frames_of(record, mark) + "between\n";
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
        FrameScanner scanner(mark);
        std::string output;
        std::vector<LauncherRecord> seen;
        for (std::size_t begin = 0; begin < stream.size(); begin += piece)
            for (auto& record : scanner.feed(std::string_view(stream).substr(begin, piece), output))
                seen.push_back(std::move(record));
        scanner.finish(output);
        EXPECT_EQ(seen, std::vector<LauncherRecord>(records)) << piece;
        EXPECT_EQ(output, "before between\nbetween\nbetween\n") << piece;
    }
}

// A program on the host writes between the frames of a long record.
TEST(RecordFrames, ALongRecordTakesSeveralFramesThatArePiecesOfAPipe) {
    const std::string mark = make_mark();
    const LauncherRecord record = record_of(std::string(9000, 'x'));
    std::string stream;
    const std::string frames = frames_of(record, mark);
    for (std::size_t begin = 0; begin < frames.size();) {
        const auto end = frames.find('\n', begin) + 1;
        EXPECT_LE(end - begin, std::size_t{PIPE_BUF});
        stream += frames.substr(begin, end - begin) + "program\n";
        begin = end;
    }
    FrameScanner scanner(mark);
    std::string output;
    EXPECT_THAT(scanner.feed(stream, output), ElementsAre(record));
    EXPECT_EQ(output, "program\nprogram\nprogram\n");
}

TEST(RecordFrames, OutputIsPassedOnUnchanged) {
    const std::string mark = make_mark();
    FrameScanner scanner(mark);
    const std::string program = "\x1e not a mark, " + mark.substr(0, 9) + "\nbytes \x01\xff without a newline";
    std::string output;
    EXPECT_THAT(scanner.feed(program + mark.substr(0, 20), output), IsEmpty());
    EXPECT_EQ(output, program);
    scanner.finish(output);
    EXPECT_EQ(output, program + mark.substr(0, 20));
}

TEST(RecordFrames, AFrameWithoutARecordIsDropped) {
    const std::string mark = make_mark();
    FrameScanner scanner(mark);
    std::string output;
    for (const char* text : {"\n", ".\n", ".nonsense\n", "+\n"})
        EXPECT_THAT(scanner.feed(mark + text, output), IsEmpty()) << text;
    EXPECT_THAT(scanner.feed(frames_of(record_of("good"), mark), output), ElementsAre(record_of("good")));
    EXPECT_EQ(output, "");
}

struct RelayPipe {
    FileDescriptor reading;
    FileDescriptor writing;
};

RelayPipe relay_pipe(int flags) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | flags), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Replaces this process's standard error.
class StandardErrorIs {
public:
    explicit StandardErrorIs(const FileDescriptor& other) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
        EXPECT_EQ(::dup2(other.get(), STDERR_FILENO), STDERR_FILENO);
    }
    StandardErrorIs(const StandardErrorIs&) = delete;
    StandardErrorIs& operator=(const StandardErrorIs&) = delete;
    ~StandardErrorIs() { (void)::dup2(before_.get(), STDERR_FILENO); }

private:
    FileDescriptor before_;
};

std::size_t write_to_relay(const FileDescriptor& to, std::string_view bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::write(to.get(), bytes.data() + done, bytes.size() - done);
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

// Small reads: the writer fills the pipe again and again.
std::string read_with_pauses(const FileDescriptor& from) {
    std::string all;
    std::array<char, 100> bytes{};
    for (ssize_t count = 0; (count = ::read(from.get(), bytes.data(), bytes.size())) > 0;)
        all.append(bytes.data(), static_cast<std::size_t>(count));
    return all;
}

// A remote shell may set O_NONBLOCK on a pipe that it shares with this process.
TEST(ErrorRelay, WaitsForASlowReaderOfANonBlockingPipe) {
    (void)::signal(SIGPIPE, SIG_IGN);
    auto shell = relay_pipe(0);
    auto errors = relay_pipe(O_NONBLOCK);
    ASSERT_EQ(::fcntl(errors.reading.get(), F_SETFL, 0), 0);  // of this end only
    ASSERT_GT(::fcntl(errors.writing.get(), F_SETPIPE_SZ, 4096), 0);
    std::string output;
    for (int line = 0; output.size() < 500000; ++line) output += "line " + std::to_string(line) + "\n";
    std::string arrived;
    std::thread reader([&] { arrived = read_with_pauses(errors.reading); });
    {
        const StandardErrorIs replaced(errors.writing);
        auto relay = ErrorRelay::start(std::move(shell.reading), make_mark());
        EXPECT_TRUE(relay.ok());
        EXPECT_EQ(write_to_relay(shell.writing, output), output.size());
        shell.writing.reset();
        if (relay.ok()) relay.value()->finish();
    }
    errors.writing.reset();
    reader.join();
    EXPECT_EQ(arrived, output);
    (void)::signal(SIGPIPE, SIG_DFL);
}

// This process has no launcher that could take the record.
TEST(ErrorRelay, PrintsAnOutcomeThatNoLauncherReceives) {
    auto shell = relay_pipe(0);
    auto errors = relay_pipe(0);
    const std::string mark = make_mark();
    {
        const StandardErrorIs replaced(errors.writing);
        auto relay = ErrorRelay::start(std::move(shell.reading), mark);
        EXPECT_TRUE(relay.ok());
        for (const char* text : {"137 ", "6 PE 2 exited with status 6"})
            (void)write_to_relay(shell.writing, frames_of({LauncherRecord::Kind::outcome, 0, {}, text}, mark));
        shell.writing.reset();
        if (relay.ok()) relay.value()->finish();
    }
    errors.writing.reset();
    EXPECT_EQ(read_with_pauses(errors.reading), "npushmem-run: PE 2 exited with status 6\n");
}

}  // namespace

}  // namespace npushmem::run
