#include "core/tools/run/error_relay.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "core/tools/run/record_frames.hpp"

namespace npushmem::run {
namespace {

struct RelayPipe {
    Fd reading;
    Fd writing;
};

RelayPipe relay_pipe(int flags) {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | flags), 0);
    return {Fd(ends[0]), Fd(ends[1])};
}

// Replaces this process's standard error.
class StandardErrorIs {
public:
    explicit StandardErrorIs(const Fd& other) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
        EXPECT_EQ(::dup2(other.get(), STDERR_FILENO), STDERR_FILENO);
    }
    StandardErrorIs(const StandardErrorIs&) = delete;
    StandardErrorIs& operator=(const StandardErrorIs&) = delete;
    ~StandardErrorIs() { (void)::dup2(before_.get(), STDERR_FILENO); }

private:
    Fd before_;
};

std::size_t write_to_relay(const Fd& to, std::string_view bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::write(to.get(), bytes.data() + done, bytes.size() - done);
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

// Small reads: the writer fills the pipe again and again.
std::string read_with_pauses(const Fd& from) {
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
TEST(ErrorRelay, ShowsTheReasonOfAnOutcomeThatTheLauncherDoesNotReceive) {
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
