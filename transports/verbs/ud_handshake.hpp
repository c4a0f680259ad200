// Sends and receives connect messages: datagrams, of which any may get lost.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/local_memory.hpp"

namespace npushmem::verbs {

class UdHandshake {
public:
    // `port` outlives the greeter.
    static Result<std::unique_ptr<UdHandshake>> open(OpenedPort& port);

    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    // What it never has more of under way.
    static constexpr int max_completions = 96;
    // Where there is no room the message counts as lost. An error: there is no route to the peer.
    Status send(const PortAddress& to, const ConnectMessage& message);
    // Of a completion of kind handshake_receive; nothing when it was none of ours.
    std::optional<ConnectMessage> received(const ibv_wc& completion);
    // Of a completion of kind handshake_send.
    void sent(const ibv_wc& completion);

private:
    static constexpr std::size_t receives = 64;
    static constexpr std::size_t sends = 32;
    static constexpr std::size_t route_header_bytes = 40;  // in front of every datagram
    static constexpr std::uint32_t key = 0x4e505348;       // that datagrams of npushmem bear

    explicit UdHandshake(OpenedPort& port) : port_(port) {}
    Status make_pair();
    Status make_ready();
    Status post_receive(std::size_t index);
    Result<ibv_ah*> address_handle_for(const PortAddress& peer);

    OpenedPort& port_;
    std::unique_ptr<BufferPool> incoming_;
    std::unique_ptr<BufferPool> outgoing_;
    Owned<ibv_qp> pair_;
    std::map<std::uint64_t, Owned<ibv_ah>> address_handles_;  // by the peer's nonce
};

}  // namespace npushmem::verbs
