// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace npushmem::run {

OutputSink::OutputSink(int descriptor) : shared_(descriptor) {
    struct stat facts {};
    if (::fstat(descriptor, &facts) != 0) return;
    socket_ = S_ISSOCK(facts.st_mode);
    if (!S_ISFIFO(facts.st_mode) && ::isatty(descriptor) == 0) return;
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    own_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

namespace {

// Returns the number of bytes to pass to the next write: as many whole lines as fit into PIPE_BUF bytes. A pipe takes a
// write of at most PIPE_BUF bytes atomically, so no other writer's bytes come between these lines. Returns the size of
// `text` if it fits into PIPE_BUF bytes, or if its first line does not.
std::size_t next_write_size(std::string_view text) {
    const auto last = text.size() > PIPE_BUF ? text.rfind('\n', PIPE_BUF - 1) : std::string_view::npos;
    return last == std::string_view::npos ? text.size() : last + 1;
}

}  // namespace

void OutputSink::flush() {
    std::size_t done = 0;
    while (done < waiting_.size() && !broken()) {
        const char* from = waiting_.data() + done;
        const std::size_t bytes = next_write_size(std::string_view(waiting_).substr(done));
        const ssize_t written =
            socket_ ? ::send(shared_, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd(), from, bytes);
        if (written >= 0)
            done += static_cast<std::size_t>(written);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno != EINTR)
            error_ = errno;
    }
    waiting_.erase(0, broken() ? waiting_.size() : done);
}

void LinePrefixer::feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
        const auto newline = bytes.find('\n');
        const auto room = limit_ - partial_.size();
        const auto taken = std::min({newline, room, bytes.size()});
        partial_.append(bytes.substr(0, taken));
        bytes.remove_prefix(taken);
        const bool line_ends = taken == newline;
        if (line_ends) bytes.remove_prefix(1);
        if (line_ends || (partial_.size() == limit_ && !bytes.empty() && bytes.front() != '\n')) emit(out);
    }
}

void LinePrefixer::finish(std::string& out) {
    if (!partial_.empty()) emit(out);
}

void LinePrefixer::emit(std::string& out) {
    out.append(tag_).append(partial_).push_back('\n');
    partial_.clear();
}

TaggedOutput::TaggedOutput(DispatchingPoller& poller, OutputSink& output, OutputSink& errors)
    : poller_(poller), output_(output), errors_(errors) {}

TaggedOutput::~TaggedOutput() {
    for (const auto& [fd, stream] : streams_) poller_.remove(fd);
}

Status TaggedOutput::add(int pe, FileDescriptor output, FileDescriptor errors) {
    Status first = add_stream(pe, std::move(output), output_);
    return first.ok() ? add_stream(pe, std::move(errors), errors_) : first;
}

Status TaggedOutput::add_stream(int pe, FileDescriptor pipe, OutputSink& sink) {
    const int fd = pipe.get();
    // Makes only the launcher's end of the pipe non-blocking. The PE's writes still block, as they would without a
    // launcher.
    (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
    streams_.emplace(fd, Stream{std::move(pipe), LinePrefixer(fmt::format("[pe {}] ", pe)), &sink});
    return poller_.add(fd, EPOLLIN, [this, fd](std::uint32_t) { readable(fd); });
}

void TaggedOutput::readable(int fd) {
    Stream& stream = streams_.at(fd);
    if (stream.sink->broken()) return end(fd);  // the PE's next write raises SIGPIPE, as it would without a launcher
    if (stream.sink->full()) {
        poller_.remove(fd);
        paused_.push_back(fd);
    } else if (read_some(stream) == Reading::ended) {
        end(fd);
    }
}

TaggedOutput::Reading TaggedOutput::read_some(Stream& stream) {
    std::array<char, 65536> bytes;
    const ssize_t count = ::read(stream.pipe.get(), bytes.data(), bytes.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR ? Reading::nothing : Reading::ended;
    if (count == 0) return Reading::ended;
    stream.lines.feed({bytes.data(), static_cast<std::size_t>(count)}, stream.sink->text());
    return Reading::some;
}

void TaggedOutput::end(int fd) {
    const auto found = streams_.find(fd);
    found->second.lines.finish(found->second.sink->text());
    poller_.remove(fd);
    streams_.erase(found);
}

void TaggedOutput::resume() {
    if (paused_.empty() || output_.full() || errors_.full()) return;
    for (const int fd : std::exchange(paused_, {}))
        if (!poller_.add(fd, EPOLLIN, [this, fd](std::uint32_t) { readable(fd); }).ok()) end(fd);
}

void TaggedOutput::finish() {
    while (!streams_.empty()) {
        auto& [fd, stream] = *streams_.begin();
        while (read_some(stream) == Reading::some) {
        }
        end(fd);
    }
}

InputRelay::InputRelay(DispatchingPoller& poller, int terminal, FileDescriptor to)
    : poller_(poller), terminal_(terminal), to_(std::move(to)) {
    (void)::fcntl(to_.get(), F_SETFL, O_NONBLOCK);  // only the launcher's end; PE 0's reads still block
}

// Also returns true for a terminal that is not the controlling terminal. tcgetpgrp fails on it, and the terminal never
// stops a process that reads from it.
bool InputRelay::in_foreground() const {
    const int group = ::tcgetpgrp(terminal_);
    return group < 0 || group == ::getpgrp();
}

void InputRelay::resume_in_foreground() {
    if (!waiting_for_foreground() || !in_foreground()) return;
    reading_ = poller_.add(terminal_, EPOLLIN, [this](std::uint32_t) { read_terminal(); }).ok();
    if (!reading_) close();
}

void InputRelay::read_terminal() {
    if (!in_foreground()) return stop_reading();
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(terminal_, bytes.data(), bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0 && errno == EIO && !in_foreground()) return stop_reading();
    if (count <= 0) return close();
    waiting_.assign(bytes.data(), static_cast<std::size_t>(count));
    stop_reading();
    if (!poller_.add(to_.get(), EPOLLOUT, [this](std::uint32_t) { write_pipe(); }).ok()) close();
}

void InputRelay::write_pipe() {
    const ssize_t count = ::write(to_.get(), waiting_.data(), waiting_.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return close();  // PE 0 has closed its input
    waiting_.erase(0, static_cast<std::size_t>(count));
    if (!waiting_.empty()) return;
    poller_.remove(to_.get());
    resume_in_foreground();
}

void InputRelay::stop_reading() {
    poller_.remove(terminal_);
    reading_ = false;
}

void InputRelay::close() {
    stop_reading();
    if (to_.valid()) poller_.remove(to_.get());
    to_.reset();
    waiting_.clear();
}

}  // namespace npushmem::run
