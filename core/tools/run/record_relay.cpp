// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/record_relay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_log.hpp"

namespace npushmem::run {

namespace {

constexpr char opening = '\x1e';
constexpr std::size_t longest_text = 3500;  // a frame is below PIPE_BUF, 4096

bool is_plain(char c) { return static_cast<unsigned char>(c) >= ' ' && c != '%'; }

std::string escaped(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += is_plain(c) ? std::string(1, c) : fmt::format("%{:02x}", c);
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        const bool escape =
            text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3;
        out += escape ? static_cast<char>(value) : text[i];
        if (escape) i += 2;
    }
    return out;
}

// Returns the number of bytes at the end of `text` that could be the beginning of `mark`.
std::size_t begun(std::string_view text, std::string_view mark) {
    for (std::size_t bytes = std::min(text.size(), mark.size() - 1); bytes > 0; --bytes)
        if (text.ends_with(mark.substr(0, bytes))) return bytes;
    return 0;
}

}  // namespace

std::string make_mark() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
    return fmt::format("{}{:02x}", opening, fmt::join(bytes, ""));
}

std::string frames_of(const LauncherRecord& record, std::string_view mark) {
    std::string out;
    std::string text = escaped(record.encode());
    for (; text.size() > longest_text; text.erase(0, longest_text))
        out += fmt::format("{}+{}\n", mark, std::string_view(text).substr(0, longest_text));
    return out + fmt::format("{}.{}\n", mark, text);
}

std::vector<LauncherRecord> FrameScanner::feed(std::string_view bytes, std::string& output) {
    std::vector<LauncherRecord> records;
    waiting_ += bytes;
    while (take_output(output) && take_frame(records)) {
    }
    return records;
}

void FrameScanner::finish(std::string& output) {
    output += waiting_;
    waiting_.clear();
}

// True: the waiting bytes begin with a mark.
bool FrameScanner::take_output(std::string& output) {
    const auto found = waiting_.find(mark_);
    const auto bytes = found == std::string::npos ? waiting_.size() - begun(waiting_, mark_) : found;
    output.append(waiting_, 0, bytes);
    waiting_.erase(0, bytes);
    return found != std::string::npos;
}

// True: a complete frame was removed.
bool FrameScanner::take_frame(std::vector<LauncherRecord>& records) {
    const auto end = waiting_.find('\n');
    if (end == std::string::npos) return false;
    const bool continues = waiting_[mark_.size()] == '+';
    if (end > mark_.size()) record_.append(waiting_, mark_.size() + 1, end - mark_.size() - 1);
    waiting_.erase(0, end + 1);
    if (continues) return true;
    std::string bytes = unescaped(record_);
    if (!bytes.empty()) bytes.pop_back();  // the record's last byte
    if (auto record = LauncherRecord::decode(bytes)) records.push_back(std::move(*record));
    record_.clear();
    return true;
}

namespace {

// Bytes that are read from a stream that is still open when the shell has ended; a pipe holds less.
constexpr std::size_t longest_rest = std::size_t{1} << 20;

void wait_for_room() {
    pollfd errors{STDERR_FILENO, POLLOUT, 0};
    (void)::poll(&errors, 1, -1);
}

// False: the reader has closed it. Standard error may be non-blocking: a remote shell sets this on streams that it
// shares.
bool pass_on_output(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
        if (written < 0 && errno == EAGAIN) wait_for_room();
        if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

// Writes a line to standard error if the launcher does not receive it.
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

Result<std::unique_ptr<ErrorRelay>> ErrorRelay::start(FileDescriptor from, const std::string& mark) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return Status{Code::system, fmt::format("pipe for the end of the error relay: {}", std::strerror(errno))};
    std::unique_ptr<ErrorRelay> made(new ErrorRelay);
    made->stop_reading_ = FileDescriptor(ends[0]);
    made->stop_ = FileDescriptor(ends[1]);
    made->from_ = std::move(from);
    (void)::fcntl(made->from_.get(), F_SETFL, O_NONBLOCK);  // this end only
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

// False: the stream has ended, or its rest has been read.
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
