// SPDX-License-Identifier: BSD-3-Clause
// A connection in memory, whose other end is the test: it sees what was sent and decides what arrives, and when.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "mine_wire.hpp"

namespace mine_plugin {

// Outlives the connection, so that a test sees its end.
struct FakePeer {
    struct Message {
        Header header;
        Bytes payload;
    };
    std::vector<Message> sent;
    std::size_t room = 1000;  // messages that can be sent
    std::deque<Bytes> input;  // messages to receive
    // After the input: none, closed or broken.
    Connection::Received end = Connection::Received::none;
    Connection::Interest interest = Connection::Interest::input;
    bool is_connected = true;

    void push(const Header& header, const Bytes& payload = {}) {
        Bytes& message = input.emplace_back(sizeof header);
        std::memcpy(message.data(), &header, sizeof header);
        message.insert(message.end(), payload.begin(), payload.end());
    }
};

class FakeConnection final : public Connection {
public:
    explicit FakeConnection(FakePeer& peer) : peer_(peer) {}
    ~FakeConnection() override { peer_.is_connected = false; }

    Sent send(const Header& header, std::span<const std::byte> payload) override {
        if (peer_.room == 0) return Sent::full;
        --peer_.room;
        peer_.sent.push_back({header, Bytes(payload.begin(), payload.end())});
        return Sent::yes;
    }
    Received receive(std::span<std::byte> buffer, std::size_t& bytes) override {
        if (peer_.input.empty()) return peer_.end;
        bytes = std::min(buffer.size(), peer_.input.front().size());
        std::copy_n(peer_.input.front().begin(), bytes, buffer.begin());
        peer_.input.pop_front();
        return Received::message;
    }
    void watch(Interest interest) override { peer_.interest = interest; }
    void close() override {}

private:
    FakePeer& peer_;
};

}  // namespace mine_plugin
