#include "core/tools/run/input_relay.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace npushmem::run {

InputRelay::InputRelay(Poller& poller, int terminal, Fd to) : poller_(poller), terminal_(terminal), to_(std::move(to)) {
    (void)::fcntl(to_.get(), F_SETFL, O_NONBLOCK);  // this end only
}

// A terminal that is not the controlling one has no foreground to wait for.
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
    if (count < 0) return close();  // PE 0 reads no more
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
    if (to_.open()) poller_.remove(to_.get());
    to_.reset();
    waiting_.clear();
}

}  // namespace npushmem::run
