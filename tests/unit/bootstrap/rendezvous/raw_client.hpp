// SPDX-License-Identifier: BSD-3-Clause
// A client that sends whatever bytes a test wants, and frames that are almost right.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <span>

#include "bootstrap/rendezvous/authentication.hpp"
#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "core/base/socket.hpp"

namespace npushmem::rendezvous {

// A whole frame as bytes; without a key its tag is zero.
inline Buffer raw_frame(const std::optional<SipKey>& key, std::uint32_t session, std::uint64_t sequence, FrameType type,
                        std::span<const std::byte> payload) {
    FrameHeader header{type, session, static_cast<std::uint32_t>(payload.size()), sequence};
    if (key) header.tag = sign(*key, header, payload);
    return ByteWriter().bytes(header.encode()).bytes(header.tag).bytes(payload).take();
}

class RawClient {
public:
    explicit RawClient(const Address& where) : socket_(std::move(Socket::connect(where)).value()) {}

    [[nodiscard]] const Socket& socket() const { return socket_; }

    void send(std::span<const std::byte> bytes) const {
        while (!bytes.empty()) {
            const Transfer done = socket_.send(bytes);
            if (done.outcome == Transfer::Outcome::failed) return;
            if (done.outcome == Transfer::Outcome::would_block) wait(POLLOUT);
            bytes = bytes.subspan(done.bytes);
        }
    }

    // Exactly `count` bytes, or fewer if the other side closes.
    [[nodiscard]] Buffer receive(std::size_t count) const {
        Buffer bytes(count);
        std::size_t have = 0;
        while (have < count) {
            const Transfer done = socket_.receive(std::span(bytes).subspan(have));
            if (done.outcome == Transfer::Outcome::would_block) wait(POLLIN);
            if (done.outcome == Transfer::Outcome::end || done.outcome == Transfer::Outcome::failed) break;
            have += done.bytes;
        }
        bytes.resize(have);
        return bytes;
    }

    // The other side has hung up, after whatever it may have sent.
    [[nodiscard]] bool is_rejected() const {
        while (!receive(1).empty()) {
        }
        return true;
    }

    // Greets and returns the keys that the answer leads to.
    ConnectionKeys greet(const Credentials& credentials, std::uint32_t session) const {
        const Nonce mine{std::byte{1}, std::byte{2}};
        send(raw_frame({}, session, 0, FrameType::hello, Hello{credentials.job, mine}.encode()));
        const Buffer answer = receive(FrameHeader::bytes + sizeof(Nonce));
        EXPECT_EQ(answer.size(), FrameHeader::bytes + sizeof(Nonce));
        Nonce theirs{};
        if (answer.size() == FrameHeader::bytes + theirs.size())
            std::ranges::copy(std::span(answer).subspan(FrameHeader::bytes), theirs.begin());
        return derive_keys(credentials, session, mine, theirs);
    }

private:
    void wait(short events) const {
        constexpr int test_patience_ms = 20000;
        pollfd waiting{socket_.fd(), events, 0};
        ASSERT_EQ(::poll(&waiting, 1, test_patience_ms), 1) << "the other side neither answers nor hangs up";
    }

    Socket socket_;
};

}  // namespace npushmem::rendezvous
