// SPDX-License-Identifier: BSD-3-Clause
#include "mine_hub.hpp"

#include <poll.h>
#include <signal.h>

#include <cstring>

namespace mine_plugin {
namespace {

std::string name_of_rank(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

Hub::Hub(Channel listener, Channel rank_0, int nranks, Milliseconds timeout)
    : listener_(std::move(listener)), nranks_(nranks), timeout_(timeout), deadline_(Clock::now() + timeout) {
    const int key = rank_0.descriptor();
    peers_.try_emplace(key, std::move(rank_0));
    // The thread inherits the mask: the program's signal handlers run in the program's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Hub::~Hub() { thread_.join(); }

// Ends when rank 0 has closed its connection, after everything that rank 0 has sent before.
void Hub::run() {
    while (!rank_0_left_) poll_once();
    for (auto& entry : peers_)
        if (entry.second.rank > 0) send_to(entry.second, Kind::bye, Code::ok, {});
}

void Hub::poll_once() {
    std::vector<pollfd> wanted;
    for (const auto& entry : peers_) wanted.push_back({entry.first, POLLIN, 0});
    if (listener_.is_open()) wanted.push_back({listener_.descriptor(), POLLIN, 0});
    const bool has_deadline = failure_.ok() && (!everyone_joined() || arrived_ > 0);
    const int ready = ::poll(wanted.data(), wanted.size(), has_deadline ? milliseconds_until(deadline_) : -1);
    if (ready <= 0 && has_deadline && Clock::now() >= deadline_) return expire();
    for (const pollfd& each : wanted) {
        if (each.revents == 0) continue;
        if (each.fd == listener_.descriptor()) {
            Channel channel = listener_.accept();
            const int key = channel.descriptor();
            if (channel.is_open()) peers_.try_emplace(key, std::move(channel));
        } else if (const auto found = peers_.find(each.fd); found != peers_.end()) {
            serve(found->second);
        }
    }
}

// Receives all messages of a peer. May remove it.
void Hub::serve(Peer& peer) {
    for (;;) {
        Message message;
        const Channel::Received received = peer.channel.receive(message);
        if (received == Channel::Received::partial) return;
        if (received == Channel::Received::complete) {
            handle(peer, std::move(message));
            continue;
        }
        const int rank = peer.rank;
        if (rank == 0) rank_0_left_ = true;
        if (rank >= 0 && !peer.left)
            fail(Code::peer_dead, name_of_rank(rank) + " has ended without leaving the job", rank);
        peers_.erase(peer.channel.descriptor());
        return;
    }
}

void Hub::handle(Peer& peer, Message message) {
    if (peer.rank < 0) return join(peer, message);
    switch (message.header.kind) {
        case Kind::gather:
        case Kind::barrier: return collect(peer, std::move(message));
        case Kind::abort: {
            const std::string reason(reinterpret_cast<const char*>(message.payload.data()), message.payload.size());
            peer.left = true;
            return fail(Code::aborted, name_of_rank(peer.rank) + " aborted the job: " + reason, peer.rank);
        }
        case Kind::bye:
            peer.left = true;
            // Ranks that are in a call wait for this rank in vain. Others may be about to leave, too.
            if (arrived_ > 0 || !everyone_joined())
                fail(Code::peer_dead, name_of_rank(peer.rank) + " has left the job", peer.rank);
            return;
        default: return fail(Code::protocol, name_of_rank(peer.rank) + " sent an unexpected message");
    }
}

// A process that says no valid hello is ignored until it closes its connection: it is none of this job.
void Hub::join(Peer& peer, const Message& hello) {
    const int rank = hello.header.rank;
    if (hello.header.kind != Kind::hello || rank < 0) return;
    if (hello.header.bytes != static_cast<std::uint64_t>(nranks_) || rank >= nranks_)
        fail(Code::mismatch, name_of_rank(rank) + " expects " + std::to_string(hello.header.bytes) +
                                 " ranks, and rank 0 " + std::to_string(nranks_));
    else if (of_rank(rank) != nullptr)
        fail(Code::argument, "two processes have joined as " + name_of_rank(rank));
    else
        peer.rank = rank;
    // Also a rank that joins after the failure, or is its cause, gets the cause.
    if (!failure_.ok())
        return send_to(peer, Kind::failure, failure_.code(), std::as_bytes(std::span(failure_.message())));
    if (++joined_ < nranks_) return;
    listener_ = Channel();  // the next job of this name may listen
    // Rank 0 last: when it leaves, all others have their answers.
    for (int each = nranks_ - 1; each >= 0; --each) send_to(*of_rank(each), Kind::hello, Code::ok, {});
}

void Hub::collect(Peer& peer, Message message) {
    if (!failure_.ok()) return;
    if (arrived_ == 0) deadline_ = Clock::now() + timeout_;
    for (auto& entry : peers_) {
        const Peer& other = entry.second;
        if (other.rank >= 0 && other.left) return fail(Code::peer_dead, name_of_rank(other.rank) + " has left the job");
        if (!other.has_part) continue;
        if (other.part.header.kind != message.header.kind || other.part.header.bytes != message.header.bytes)
            return fail(Code::mismatch, "the ranks disagree: " + name_of_rank(other.rank) + " gave " +
                                            std::to_string(other.part.header.bytes) + " bytes, " +
                                            name_of_rank(peer.rank) + " " + std::to_string(message.header.bytes) +
                                            (other.part.header.kind == message.header.kind
                                                 ? ""
                                                 : "; one of them is in a barrier, the other gathers"));
    }
    if (peer.has_part || message.header.bytes > max_part)
        return fail(Code::protocol, name_of_rank(peer.rank) + " sent two parts, or more than the limit of bytes");
    peer.has_part = true;
    peer.part = std::move(message);
    ++arrived_;
    // A rank that left and whose connection is closed is no peer any more.
    if (static_cast<int>(peers_.size()) < nranks_) return fail(Code::peer_dead, missing(false) + " left the job");
    if (arrived_ == nranks_) answer();
}

// Rank 0 last: when it leaves, all others have their results.
void Hub::answer() {
    Bytes all;
    const Kind kind = of_rank(0)->part.header.kind;
    for (int rank = 0; rank < nranks_; ++rank) {
        Peer& peer = *of_rank(rank);
        all.insert(all.end(), peer.part.payload.begin(), peer.part.payload.end());
        peer.part = {};
        peer.has_part = false;
    }
    arrived_ = 0;
    for (int rank = nranks_ - 1; rank >= 0; --rank) send_to(*of_rank(rank), kind, Code::ok, all);
}

void Hub::expire() {
    const bool in_call = everyone_joined();
    fail(Code::timeout, missing(in_call) + (in_call ? " did not enter the call" : " did not join the job") +
                            " within " + std::to_string(timeout_.count()) + " ms (NPUSHMEM_BOOTSTRAP_TIMEOUT)");
}

std::string Hub::missing(bool in_call) {
    std::string out;
    int count = 0;
    for (int rank = 0; rank < nranks_; ++rank) {
        const Peer* const peer = of_rank(rank);
        if (peer != nullptr && !peer->left && (!in_call || peer->has_part)) continue;
        constexpr int max_named = 8;
        if (++count <= max_named) out += (out.empty() ? "rank " : ", ") + std::to_string(rank);
    }
    return count > 8 ? out + " and " + std::to_string(count - 8) + " more" : out;
}

void Hub::fail(Code code, const std::string& cause, int source) {
    if (!failure_.ok()) return;
    failure_ = {code, cause};
    listener_ = Channel();
    for (auto& entry : peers_)
        if (entry.second.rank >= 0 && entry.second.rank != source)
            send_to(entry.second, Kind::failure, code, std::as_bytes(std::span(cause)));
}

// A peer that has ended or reads nothing is detected when its connection ends, or by the time-out of the next call.
void Hub::send_to(Peer& peer, Kind kind, Code code, std::span<const std::byte> payload) const {
    Header header;
    header.kind = kind;
    header.code = static_cast<std::int32_t>(code);
    (void)peer.channel.send(header, payload, Clock::now() + timeout_);
}

Hub::Peer* Hub::of_rank(int rank) {
    for (auto& entry : peers_)
        if (entry.second.rank == rank) return &entry.second;
    return nullptr;
}

}  // namespace mine_plugin
