// SPDX-License-Identifier: BSD-3-Clause
// Authenticates incoming connections: accepts those that know the credentials and closes all others.
//
// It owns a listener and the pending connections, which have not completed the handshake. Each of them has a few
// seconds for the handshake and a few hundred bytes of memory. When there are too many, the oldest is closed first: an
// honest rank needs milliseconds, and connects again when it is rejected. One epoll descriptor watches all of them; it
// is readable when serve() has something to do, so the owner can wait for it. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "bootstrap/rendezvous/authentication.hpp"
#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/poller.hpp"
#include "core/base/socket.hpp"

namespace npushmem::rendezvous {

// A connection whose first signed frame has been verified.
struct AuthenticatedConnection {
    Nonce job;
    Channel channel;
    Frame first;
};

class HandshakeAcceptor {
public:
    // Returns the credentials of a job, or none if this service does not serve it.
    using FindCredentials = std::function<std::optional<Credentials>(const Nonce& job)>;
    struct Limits {
        std::size_t pending_connections = limits::pending_connections;
        Clock::duration handshake_timeout = limits::handshake_timeout;
    };

    static Result<HandshakeAcceptor> make(Socket listener, std::uint32_t session, FindCredentials find);
    static Result<HandshakeAcceptor> make(Socket listener, std::uint32_t session, FindCredentials find, Limits limits);

    [[nodiscard]] int fd() const { return poller_.fd(); }
    [[nodiscard]] Address address() const { return listener_.local_address(); }
    [[nodiscard]] std::size_t pending_connections() const { return pending_.size(); }
    // From now on only connections to this session are accepted.
    void expect_session(std::uint32_t session) { session_ = session; }

    // Accepts, reads, answers and rejects without waiting. Returns the authenticated connections.
    std::vector<AuthenticatedConnection> serve(Moment now = Clock::now());
    // When serve() must be called although the descriptor has no event.
    [[nodiscard]] Deadline next_timeout() const;

private:
    struct PendingConnection {
        Channel channel;
        Moment arrived;
        Nonce job{};
        bool challenged = false;
    };
    using Id = std::uint64_t;  // order of arrival; 0 is the listener
    enum class HandshakeResult { pending, authenticated, rejected };

    HandshakeAcceptor(Socket listener, Poller poller, std::uint32_t session, FindCredentials find, Limits limits);

    void accept_all(Moment now);
    void add_pending(Socket connection, Moment now);
    void on_descriptors_exhausted(Moment now);
    void expire(Moment now);
    HandshakeResult receive_handshake(PendingConnection& connection, std::optional<Frame>& first);
    HandshakeResult challenge(PendingConnection& connection, const Frame& hello);

    Socket listener_;
    Poller poller_;
    std::uint32_t session_;
    FindCredentials find_;
    Limits limits_;
    Id next_id_ = 1;
    std::map<Id, PendingConnection> pending_;
    std::optional<Moment> accept_paused_until_;  // accepting is paused because no descriptor was free
};

}  // namespace npushmem::rendezvous
