// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/handshake_acceptor.hpp"

#include <cerrno>

#include "bootstrap/rendezvous/authentication.hpp"

namespace npushmem::rendezvous {
namespace {

constexpr std::uint64_t listener_key = 0;
constexpr int accepts_per_round = 64;  // then pending connections are served
constexpr std::size_t hello_payload_limit = 64;
constexpr Milliseconds accept_pause{20};

}  // namespace

Result<HandshakeAcceptor> HandshakeAcceptor::make(Socket listener, std::uint32_t session, FindCredentials find) {
    return make(std::move(listener), session, std::move(find), Limits{});
}

Result<HandshakeAcceptor> HandshakeAcceptor::make(Socket listener, std::uint32_t session, FindCredentials find,
                                                  Limits limits) {
    auto poller = Poller::open();
    if (!poller.ok()) return poller.status();
    if (Status watched = poller.value().watch(listener.fd(), listener_key); !watched.ok()) return watched;
    return HandshakeAcceptor(std::move(listener), std::move(poller).value(), session, std::move(find), limits);
}

HandshakeAcceptor::HandshakeAcceptor(Socket listener, Poller poller, std::uint32_t session, FindCredentials find,
                                     Limits limits)
    : listener_(std::move(listener)),
      poller_(std::move(poller)),
      session_(session),
      find_(std::move(find)),
      limits_(limits) {}

std::vector<AuthenticatedConnection> HandshakeAcceptor::serve(Moment now) {
    std::vector<AuthenticatedConnection> admitted;
    expire(now);
    for (const Poller::Event& event : poller_.wait(0)) {
        if (event.key == listener_key) {
            accept_all(now);
            continue;
        }
        const auto found = pending_.find(event.key);
        if (found == pending_.end()) continue;  // rejected earlier in this round
        std::optional<Frame> first;
        const HandshakeResult result = receive_handshake(found->second, first);
        if (result == HandshakeResult::pending) continue;
        auto leaving = pending_.extract(found);
        if (result == HandshakeResult::rejected) continue;
        poller_.remove(leaving.mapped().channel.fd());
        admitted.push_back({leaving.mapped().job, std::move(leaving.mapped().channel), std::move(*first)});
    }
    return admitted;
}

void HandshakeAcceptor::accept_all(Moment now) {
    for (int i = 0; i < accepts_per_round; ++i) {
        int error = 0;
        Socket connection = listener_.accept(error);
        if (connection.valid()) {
            add_pending(std::move(connection), now);
        } else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
            return on_descriptors_exhausted(now);
        } else if (error == EAGAIN || error == EWOULDBLOCK) {
            return;
        }  // else: that connection closed in the queue, or a signal arrived
    }
}

void HandshakeAcceptor::add_pending(Socket connection, Moment now) {
    if (pending_.size() >= limits_.pending_connections) pending_.erase(pending_.begin());
    const Id id = next_id_++;
    if (!poller_.watch(connection.fd(), id).ok()) return;
    pending_.emplace(id, PendingConnection{Channel(std::move(connection), session_, hello_payload_limit), now});
}

// Closes pending connections first. Without any it pauses the listener, which would stay readable and make serve()
// spin.
void HandshakeAcceptor::on_descriptors_exhausted(Moment now) {
    if (!pending_.empty()) {
        pending_.erase(pending_.begin());
        return;
    }
    poller_.modify(listener_.fd(), listener_key, 0);
    accept_paused_until_ = now + accept_pause;
}

void HandshakeAcceptor::expire(Moment now) {
    while (!pending_.empty() && pending_.begin()->second.arrived + limits_.handshake_timeout <= now)
        pending_.erase(pending_.begin());
    if (accept_paused_until_ && *accept_paused_until_ <= now) {
        accept_paused_until_.reset();
        poller_.modify(listener_.fd(), listener_key, EPOLLIN);
    }
}

Deadline HandshakeAcceptor::next_timeout() const {
    Deadline next = accept_paused_until_ ? Deadline::at(*accept_paused_until_) : Deadline::never();
    if (!pending_.empty())
        next = next.sooner(Deadline::at(pending_.begin()->second.arrived + limits_.handshake_timeout));
    return next;
}

HandshakeAcceptor::HandshakeResult HandshakeAcceptor::receive_handshake(PendingConnection& connection,
                                                                        std::optional<Frame>& first) {
    if (connection.channel.fill() == Channel::Input::end) return HandshakeResult::rejected;
    for (;;) {
        auto frame = connection.channel.next();
        if (!frame.ok() && frame.status().code() == Code::unsupported) {
            // Another version: any frame of ours carries our version to the other side.
            connection.channel.queue(FrameType::challenge, {});
            connection.channel.finish();
        }
        if (!frame.ok()) return HandshakeResult::rejected;
        if (!frame.value()) return HandshakeResult::pending;
        if (connection.challenged) {
            first = std::move(*frame.value());
            return HandshakeResult::authenticated;
        }
        if (challenge(connection, *frame.value()) == HandshakeResult::rejected) return HandshakeResult::rejected;
    }
}

// A job that is not served here gets an answer under a random secret: the port does not reveal to unauthenticated peers
// which jobs exist, and an honest rank sees at once that its id is not valid here.
HandshakeAcceptor::HandshakeResult HandshakeAcceptor::challenge(PendingConnection& connection, const Frame& frame) {
    const auto hello = frame.type == FrameType::hello ? Hello::decode(frame.payload) : std::nullopt;
    if (!hello) return HandshakeResult::rejected;
    auto credentials = find_(hello->job);
    if (!credentials) {
        credentials.emplace();
        if (!fill_random(credentials->secret).ok()) return HandshakeResult::rejected;
    }
    Nonce nonce{};
    if (!fill_random(nonce).ok()) return HandshakeResult::rejected;
    const ConnectionKeys keys = derive_keys(*credentials, session_, hello->nonce, nonce);
    Channel& channel = connection.channel;
    channel.secure(keys.acceptor, keys.connector);
    channel.allow_payload(limits::introduction_bytes);
    channel.queue(FrameType::challenge, {nonce});
    channel.flush();
    connection.job = hello->job;
    connection.challenged = true;
    return channel.queued() == 0 && !channel.send_closed() ? HandshakeResult::pending : HandshakeResult::rejected;
}

}  // namespace npushmem::rendezvous
