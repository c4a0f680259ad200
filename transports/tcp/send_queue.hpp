// SPDX-License-Identifier: BSD-3-Clause
// The frames that a connection has to send.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/base/socket.hpp"
#include "transports/network/wire.hpp"
#include "transports/tcp/frame.hpp"

namespace npushmem::tcp {

// The payload of a frame. The parts are sent one after another.
struct Payload {
    std::span<const std::byte> first{};
    std::span<const std::byte> second{};
    bool copied = true;     // false: the memory stays valid until the frame is sent
    bool may_wait = false;  // in a batch; only if copied
    bool is_answer = false;
    std::uint64_t region = 0;                 // of an answer that is not copied: the own memory it is sent from
    network::WireContext* context = nullptr;  // completes when the frame is sent
};

// Sends each frame at once if the socket has room, else keeps it, in order. A batch holds short frames back on the
// caller's demand: one call of the kernel sends all of them. One thread.
class SendQueue {
public:
    // Sends the frame or keeps it. `head`: FrameHeader, and FrameSignal. False: the socket has failed, with this errno
    // in error().
    bool post(const Socket& socket, std::span<const std::byte> head, const Payload& payload);
    // Adds a copied frame to the batch, while has_room_in_batch().
    void add_to_batch(std::span<const std::byte> head, const Payload& payload);
    // False: the socket has failed.
    bool send_batch(const Socket& socket);
    [[nodiscard]] bool has_batch() const { return !batch_.empty(); }
    [[nodiscard]] bool has_room_in_batch(std::size_t bytes) const {
        return is_open_ && frames_.empty() && batch_.size() + bytes <= max_batch_bytes;
    }
    // Sends what fits, and sets `moved` if that is something. False: the socket has failed.
    bool flush(const Socket& socket, bool& moved);
    // Frames stay in the queue until it is open.
    void open() { is_open_ = true; }
    [[nodiscard]] bool is_open() const { return is_open_; }
    // Appends the frames of a queue that has never been open.
    void take(SendQueue& other);

    [[nodiscard]] bool empty() const { return frames_.empty() && batch_.empty(); }
    // Frames wait until the socket has room.
    [[nodiscard]] bool must_write() const { return !frames_.empty(); }
    [[nodiscard]] bool has_operations() const { return frames_.size() > answers_ || !batch_.empty(); }
    // False: the caller should wait until frames have left.
    [[nodiscard]] bool has_room() const { return frames_.size() < max_frames && copied_bytes_ < max_copied_bytes; }
    [[nodiscard]] std::size_t answers() const { return answers_; }
    [[nodiscard]] int error() const { return error_; }
    // The contexts of frames that have been sent since the last call.
    std::vector<network::WireContext*> take_sent();
    // Drops all frames; returns the contexts of those that were not sent.
    std::vector<network::WireContext*> drop();
    // The memory of answers from this region is copied, because it is no longer registered.
    void copy_answers_of(std::uint64_t region);

private:
    static constexpr std::size_t max_frames = 1024;
    static constexpr std::size_t max_copied_bytes = std::size_t{1} << 20;
    static constexpr std::size_t max_batch_bytes = 16384;
    static constexpr std::size_t max_head_bytes = sizeof(FrameHeader) + sizeof(FrameSignal);

    struct Frame {
        std::array<std::byte, max_head_bytes> head;
        std::size_t head_bytes = 0;
        Bytes copy;                       // the payload, if it was copied
        std::span<const std::byte> data;  // the payload
        std::size_t sent = 0;             // bytes of head and payload
        bool is_answer = false;
        std::uint64_t region = 0;
        network::WireContext* context = nullptr;

        [[nodiscard]] std::size_t bytes() const { return head_bytes + data.size(); }
    };

    // Sends the batch and then the parts. Returns how many bytes of the parts are sent; negative: an errno.
    std::ptrdiff_t send_behind_batch(const Socket& socket, const std::array<iovec, 3>& parts);
    void keep(std::span<const std::byte> head, const Payload& payload, std::size_t sent);
    void retire(std::size_t sent);

    bool is_open_ = false;
    std::deque<Frame> frames_;
    Bytes batch_;  // goes before all frames
    std::size_t copied_bytes_ = 0;
    std::size_t answers_ = 0;
    std::vector<network::WireContext*> sent_;
    int error_ = 0;
};

}  // namespace npushmem::tcp
