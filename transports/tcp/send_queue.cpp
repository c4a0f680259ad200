// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tcp/send_queue.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include "core/base/out_of_memory.hpp"

namespace npushmem::tcp {
namespace {

iovec part(std::span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

// The number of bytes that the kernel has taken, 0 if it has no room; negative: an errno.
ssize_t send_parts(const Socket& socket, std::span<iovec> parts) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    for (;;) {
        const ssize_t sent = ::sendmsg(socket.fd(), &message, MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return -errno;
    }
}

}  // namespace

bool SendQueue::post(const Socket& socket, std::span<const std::byte> head, const Payload& payload) {
    std::size_t sent = 0;
    const std::size_t bytes = head.size() + payload.first.size() + payload.second.size();
    if (is_open_ && frames_.empty()) {
        const ssize_t done = send_behind_batch(socket, {part(head), part(payload.first), part(payload.second)});
        if (done < 0) return error_ = static_cast<int>(-done), false;
        sent = static_cast<std::size_t>(done);
        if (sent == bytes) {
            if (payload.context != nullptr) sent_.push_back(payload.context);
            return true;
        }
    }
    keep(head, payload, sent);
    return true;
}

ssize_t SendQueue::send_behind_batch(const Socket& socket, const std::array<iovec, 3>& parts) {
    std::array<iovec, 4> all{part(batch_), parts[0], parts[1], parts[2]};
    const ssize_t done = send_parts(socket, std::span(all).subspan(batch_.empty() ? 1 : 0));
    if (done < 0) return done;
    const std::size_t of_batch = std::min(static_cast<std::size_t>(done), batch_.size());
    if (of_batch < batch_.size()) keep({}, {.first = std::span(batch_).subspan(of_batch)}, 0);
    batch_.clear();
    return done - static_cast<ssize_t>(of_batch);
}

bool SendQueue::send_batch(const Socket& socket) {
    if (batch_.empty()) return batch_ = Bytes(), true;
    const ssize_t done = send_behind_batch(socket, {});
    batch_ = Bytes();  // few connections have one at a time
    if (done < 0) error_ = static_cast<int>(-done);
    return done >= 0;
}

void SendQueue::add_to_batch(std::span<const std::byte> head, const Payload& payload) {
    if (batch_.empty()) batch_.reserve(max_batch_bytes);
    for (const auto& bytes : {head, payload.first, payload.second})
        batch_.insert(batch_.end(), bytes.begin(), bytes.end());
    if (payload.context != nullptr) sent_.push_back(payload.context);
}

// Part of the frame may have been sent: nothing could follow it.
void SendQueue::keep(std::span<const std::byte> head, const Payload& payload, std::size_t sent) try {
    Frame& frame = frames_.emplace_back();
    std::ranges::copy(head, frame.head.begin());
    frame.head_bytes = head.size();
    frame.sent = sent;
    frame.context = payload.context;
    frame.region = payload.region;
    frame.is_answer = payload.is_answer;
    answers_ += payload.is_answer ? 1 : 0;
    frame.data = payload.first;
    if (!payload.copied) return;
    frame.copy.reserve(payload.first.size() + payload.second.size());
    frame.copy.insert(frame.copy.end(), payload.first.begin(), payload.first.end());
    frame.copy.insert(frame.copy.end(), payload.second.begin(), payload.second.end());
    frame.data = frame.copy;
    copied_bytes_ += frame.copy.size();
} catch (const std::bad_alloc&) {
    end_without_memory("a send of the transport tcp");
}

bool SendQueue::flush(const Socket& socket, bool& moved) {
    constexpr std::size_t at_once = 32;  // frames
    while (is_open_ && !frames_.empty()) {
        std::array<iovec, 2 * at_once> parts;
        std::size_t count = 0;
        std::size_t wanted = 0;
        for (std::size_t i = 0; i < std::min(at_once, frames_.size()); ++i) {
            const Frame& frame = frames_[i];
            const std::span<const std::byte> head(frame.head.data(), frame.head_bytes);
            const std::size_t of_head = std::min(frame.sent, frame.head_bytes);
            if (of_head < frame.head_bytes) parts[count++] = part(head.subspan(of_head));
            if (frame.sent < frame.bytes()) parts[count++] = part(frame.data.subspan(frame.sent - of_head));
            wanted += frame.bytes() - frame.sent;
        }
        const ssize_t done = send_parts(socket, std::span(parts).first(count));
        if (done < 0) return error_ = static_cast<int>(-done), false;
        moved = moved || done > 0;
        retire(static_cast<std::size_t>(done));
        if (static_cast<std::size_t>(done) < wanted) return true;
    }
    return true;
}

void SendQueue::retire(std::size_t sent) {
    while (!frames_.empty()) {
        Frame& frame = frames_.front();
        const std::size_t of_frame = std::min(sent, frame.bytes() - frame.sent);
        frame.sent += of_frame;
        sent -= of_frame;
        if (frame.sent < frame.bytes()) return;
        if (frame.context != nullptr) sent_.push_back(frame.context);
        copied_bytes_ -= frame.copy.size();
        answers_ -= frame.is_answer ? 1 : 0;
        frames_.pop_front();
    }
}

std::vector<network::WireContext*> SendQueue::take_sent() { return std::exchange(sent_, {}); }

std::vector<network::WireContext*> SendQueue::drop() {
    std::vector<network::WireContext*> unsent;
    for (const Frame& frame : frames_)
        if (frame.context != nullptr) unsent.push_back(frame.context);
    frames_.clear();
    batch_ = Bytes();
    copied_bytes_ = answers_ = 0;
    return unsent;
}

void SendQueue::take(SendQueue& other) {
    std::ranges::move(other.frames_, std::back_inserter(frames_));
    other.frames_.clear();
    copied_bytes_ += std::exchange(other.copied_bytes_, 0);
}

void SendQueue::copy_answers_of(std::uint64_t region) {
    for (Frame& frame : frames_) {
        if (frame.region != region) continue;
        const std::size_t done = std::max(frame.sent, frame.head_bytes) - frame.head_bytes;
        const std::span<const std::byte> rest = frame.data.subspan(done);
        frame.copy.assign(rest.begin(), rest.end());
        frame.data = frame.copy;
        frame.sent -= done;
        frame.region = 0;
        copied_bytes_ += frame.copy.size();
    }
}

}  // namespace npushmem::tcp
