#include "core/tools/run/tagged_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace npushmem::run {

TaggedOutput::TaggedOutput(Poller& poller, OutputSink& output, OutputSink& errors)
    : poller_(poller), output_(output), errors_(errors) {}

TaggedOutput::~TaggedOutput() {
    for (const auto& [fd, stream] : streams_) poller_.remove(fd);
}

Status TaggedOutput::add(int pe, Fd output, Fd errors) {
    Status first = add_stream(pe, std::move(output), output_);
    return first.ok() ? add_stream(pe, std::move(errors), errors_) : first;
}

Status TaggedOutput::add_stream(int pe, Fd pipe, OutputSink& sink) {
    const int fd = pipe.get();
    // Only this end of the pipe: the PE's end blocks as it would without a launcher.
    (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
    streams_.emplace(fd, Stream{std::move(pipe), LinePrefixer(fmt::format("[pe {}] ", pe)), &sink});
    return poller_.add(fd, EPOLLIN, [this, fd](std::uint32_t) { readable(fd); });
}

void TaggedOutput::readable(int fd) {
    Stream& stream = streams_.at(fd);
    if (stream.sink->broken()) return end(fd);  // the PE then gets SIGPIPE as it would without the launcher
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

}  // namespace npushmem::run
