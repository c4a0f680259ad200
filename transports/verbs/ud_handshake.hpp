// Sends and receives connect messages, as datagrams that may be lost.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "transports/verbs/connect_message.hpp"
#include "transports/verbs/local_memory.hpp"

namespace npushmem::verbs {

class UdHandshake {
public:
    // `port` outlives this object.
    static Result<std::unique_ptr<UdHandshake>> open(OpenedPort& port);

    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    // The maximum number of its outstanding completions.
    static constexpr int max_completions = 96;
    // Without room the message counts as lost. An error means that there is no route to the peer.
    Status send(const PortAddress& to, const ConnectMessage& message);
    // The message of a handshake_receive completion; empty when it is not a message of this job.
    std::optional<ConnectMessage> received(const ibv_wc& completion);
    // Handles a handshake_send completion.
    void sent(const ibv_wc& completion);

private:
    static constexpr std::size_t receives = 64;
    static constexpr std::size_t sends = 32;
    static constexpr std::size_t route_header_bytes = 40;  // before every datagram
    static constexpr std::uint32_t key = 0x4e505348;       // Q_Key of npushmem's datagrams

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
