#include "core/tools/run/error_relay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/tools/run/diagnostics.hpp"
#include "core/tools/run/outcome.hpp"
#include "core/tools/run/record_frames.hpp"

namespace npushmem::run {
namespace {

// Of a stream that is still held when the shell has ended; a pipe holds less.
constexpr std::size_t longest_rest = std::size_t{1} << 20;

void wait_for_room() {
    pollfd errors{STDERR_FILENO, POLLOUT, 0};
    (void)::poll(&errors, 1, -1);
}

// False: nobody reads it. Standard error may be non-blocking: a remote shell sets this on a stream that it shares.
bool pass_on_output(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
        if (written < 0 && errno == EAGAIN) wait_for_room();
        if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

// The user gets a line that the launcher does not receive.
bool pass_on_record(const LauncherRecord& record) {
    if (LauncherChannel::of_process().append(record)) return true;
    if (record.kind == LauncherRecord::Kind::line || record.kind == LauncherRecord::Kind::message)
        (void)pass_on_output(text_of(record));
    const auto outcome = record.kind == LauncherRecord::Kind::outcome ? parse_outcome(record.text) : std::nullopt;
    if (outcome && !outcome->exit.empty())
        (void)pass_on_output(text_of({LauncherRecord::Kind::message, -1, {}, outcome->exit}));
    return false;
}

}  // namespace

Result<std::unique_ptr<ErrorRelay>> ErrorRelay::start(Fd from, const std::string& mark) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return Status{Code::system, fmt::format("pipe for the end of the error relay: {}", std::strerror(errno))};
    std::unique_ptr<ErrorRelay> made(new ErrorRelay);
    made->stop_reading_ = Fd(ends[0]);
    made->stop_ = Fd(ends[1]);
    made->from_ = std::move(from);
    (void)::fcntl(made->from_.get(), F_SETFL, O_NONBLOCK);  // of this end only
    try {
        made->thread_ = std::thread([relay = made.get(), mark] { relay->run(mark); });
    } catch (const std::system_error& error) {
        return Status{Code::system, fmt::format("thread that relays standard error: {}", error.what())};
    }
    return made;
}

void ErrorRelay::finish() {
    stop_.reset();
    if (thread_.joinable()) thread_.join();
}

// False: the stream has ended, or what was left of it is taken.
bool ErrorRelay::wait_for_more() {
    if (stopping_) return left_ > 0;
    std::array<pollfd, 2> events{pollfd{from_.get(), POLLIN, 0}, pollfd{stop_reading_.get(), POLLIN, 0}};
    (void)::poll(events.data(), events.size(), -1);
    if (events[1].revents != 0) {
        stopping_ = true;
        left_ = longest_rest;
    }
    return true;
}

void ErrorRelay::run(const std::string& mark) {
    FrameScanner scanner(mark);
    std::array<char, 16384> bytes;
    std::string output;
    for (bool read_by_someone = true; read_by_someone && wait_for_more(); output.clear()) {
        const ssize_t count = ::read(from_.get(), bytes.data(), bytes.size());
        if (count < 0 && (errno == EINTR || (errno == EAGAIN && !stopping_))) continue;
        if (count <= 0) break;
        left_ -= std::min(left_, static_cast<std::size_t>(count));
        for (const auto& record : scanner.feed({bytes.data(), static_cast<std::size_t>(count)}, output))
            if (pass_on_record(record) && record.kind == LauncherRecord::Kind::failed_calls)
                passed_failed_calls_ = true;
        read_by_someone = pass_on_output(output);
    }
    scanner.finish(output);
    (void)pass_on_output(output);
    from_.reset();  // later writes of others fail
}

}  // namespace npushmem::run
