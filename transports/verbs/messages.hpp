// SPDX-License-Identifier: BSD-3-Clause
// Messages over connections: their buffers, and the queue of their receives.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "transports/verbs/connection_manager.hpp"
#include "transports/verbs/local_memory.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {

// Sends messages: those of the transport at once, and control messages between wires when there is room.
class MessageSender {
public:
    static constexpr std::size_t max_bytes = 4096;  // of a message

    // `buffers`: for messages that are too long to be inline. `poster` and `service` outlive this object.
    MessageSender(std::unique_ptr<BufferPool> buffers, RequestPoster& poster, ServiceQueue& service)
        : buffers_(std::move(buffers)), poster_(poster), service_(service) {}

    // Passes `immediate` to the receiver unless it is 0. Code::again: there is no room.
    Code send(Connection& connection, std::span<const std::byte> head, std::span<const std::byte> rest,
              std::uint32_t immediate = 0) {
        if (poster_.room(connection) == 0) return Code::again;
        const auto length = [](std::span<const std::byte> bytes) { return static_cast<std::uint32_t>(bytes.size()); };
        WorkChain chain;
        if (head.size() + rest.size() <= connection.pair().inline_bytes()) {
            chain.message({head.data(), length(head), 0}, {rest.data(), length(rest), 0}, true, htonl(immediate));
            return poster_.post(connection, chain, {});
        }
        std::byte* const buffer = buffers_->take();
        if (buffer == nullptr) return Code::again;
        std::memcpy(buffer, head.data(), head.size());
        if (!rest.empty()) std::memcpy(buffer + head.size(), rest.data(), rest.size());
        chain.message({buffer, length(head) + length(rest), buffers_->lkey()}, {}, false, htonl(immediate));
        const Code posted = poster_.post(connection, chain, {CompletionAction::Kind::message, buffer});
        if (posted != Code::ok) buffers_->release(buffer);
        return posted;
    }
    // A message of this buffer has completed.
    void release(std::byte* buffer) { buffers_->release(buffer); }

    // Sends a control message, now or when there is room.
    void send_control(Connection& connection, std::uint32_t kind, Bytes bytes) {
        connection.control_queue.push_back({kind, std::move(bytes)});
        (void)send_queued(connection);
        if (!connection.control_queue.empty()) service_.add(connection);
    }
    // Sends queued control messages. True when it sent something.
    bool send_queued(Connection& connection) {
        bool sent = false;
        while (!connection.control_queue.empty() && connection.ready() && connection.failure().ok()) {
            const Connection::ControlMessage& next = connection.control_queue.front();
            if (send(connection, next.bytes, {}, next.kind) != Code::ok) break;
            connection.control_queue.pop_front();
            sent = true;
        }
        return sent;
    }

private:
    std::unique_ptr<BufferPool> buffers_;
    RequestPoster& poster_;
    ServiceQueue& service_;
};

// The receives of all connections.
class SharedReceiveQueue {
public:
    // Posts a receive for each of the `count` buffers. `port` outlives the queue.
    static Result<std::unique_ptr<SharedReceiveQueue>> open(OpenedPort& port, std::unique_ptr<BufferPool> buffers,
                                                            std::uint32_t count) {
        ibv_srq_init_attr wanted{};
        wanted.attr.max_wr = count;
        wanted.attr.max_sge = 1;
        std::unique_ptr<SharedReceiveQueue> out(new SharedReceiveQueue(port.library(), std::move(buffers)));
        out->queue_ = {port.library().create_srq(port.domain().get(), &wanted),
                       [&library = port.library()](ibv_srq* srq) { library.destroy_srq(srq); }};
        if (!out->queue_)
            return Status{Code::system,
                          fmt::format("ibv_create_srq with {} receives: {}", count, text_of_error(errno))};
        for (std::size_t i = 0; i < count; ++i)
            if (Status s = out->post(i); !s.ok()) return s;
        return out;
    }

    [[nodiscard]] ibv_srq* get() const { return queue_.get(); }
    // The message in a buffer. Post the buffer again afterwards.
    [[nodiscard]] std::span<const std::byte> message(std::size_t index, std::size_t bytes) const {
        return {buffers_->at(index), bytes};
    }
    // Posts a buffer again, now or in `post_remaining`.
    void post_again(std::size_t index) {
        if (!post(index).ok()) unposted_.push_back(index);
    }
    [[nodiscard]] bool has_unposted() const { return !unposted_.empty(); }
    void post_remaining() {
        std::erase_if(unposted_, [this](std::size_t index) { return post(index).ok(); });
    }

private:
    SharedReceiveQueue(VerbsLibrary& library, std::unique_ptr<BufferPool> buffers)
        : library_(library), buffers_(std::move(buffers)) {}

    Status post(std::size_t index) {
        ibv_sge place{reinterpret_cast<std::uintptr_t>(buffers_->at(index)),
                      static_cast<std::uint32_t>(buffers_->bytes()), buffers_->lkey()};
        ibv_recv_wr request{};
        request.wr_id = WorkRequestId{WorkRequestId::Kind::receive, 0, static_cast<std::uint32_t>(index)}.packed();
        request.sg_list = &place;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        const int failed = library_.post_srq_recv(queue_.get(), &request, &bad);
        return failed == 0 ? Status{}
                           : Status{Code::system, fmt::format("ibv_post_srq_recv: {}", text_of_error(failed))};
    }

    VerbsLibrary& library_;
    // Destroyed in reverse order: the queue before its buffers.
    std::unique_ptr<BufferPool> buffers_;
    Owned<ibv_srq> queue_;
    std::vector<std::size_t> unposted_;
};

}  // namespace npushmem::verbs
