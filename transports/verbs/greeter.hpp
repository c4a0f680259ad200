// Sends and receives greetings: datagrams, of which any may get lost.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "transports/verbs/buffer_pool.hpp"
#include "transports/verbs/greeting.hpp"

namespace npushmem::verbs {

class Greeter {
public:
    // `port` outlives the greeter.
    static Result<std::unique_ptr<Greeter>> open(OpenedPort& port);

    [[nodiscard]] std::uint32_t number() const { return pair_->qp_num; }
    // What it never has more of under way.
    static constexpr int most_completions = 96;
    // Where there is no room the greeting counts as lost. An error: there is no way to the peer.
    Status send(const Contact& to, const Greeting& greeting);
    // Of a completion of kind greeting_in; nothing when it was none of ours.
    std::optional<Greeting> received(const ibv_wc& completion);
    // Of a completion of kind greeting_out.
    void sent(const ibv_wc& completion);

private:
    static constexpr std::size_t receives = 64;
    static constexpr std::size_t sends = 32;
    static constexpr std::size_t route_header_bytes = 40;  // in front of every datagram
    static constexpr std::uint32_t key = 0x4e505348;       // that datagrams of npushmem bear

    explicit Greeter(OpenedPort& port) : port_(port) {}
    Status make_pair();
    Status make_ready();
    Status post_receive(std::size_t index);
    Result<ibv_ah*> way_to(const Contact& peer);

    OpenedPort& port_;
    std::unique_ptr<BufferPool> incoming_;
    std::unique_ptr<BufferPool> outgoing_;
    Owned<ibv_qp> pair_;
    std::map<std::uint64_t, Owned<ibv_ah>> ways_;  // by the peer's nonce
};

}  // namespace npushmem::verbs
