// SPDX-License-Identifier: BSD-3-Clause
// A rank's connections to its neighbours in the tree and, while the job starts, to the rendezvous service; and the one
// failure that ends the job. While this rank waits, it reads all links, so a failure on any rank reaches every rank
// that is inside a call, and is forwarded to every other link. One thread at a time.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/deadline.hpp"

namespace npushmem::rendezvous {

// One connection: the frames that have arrived on it, and whether its peer has left or knows of the failure.
class PeerLink {
public:
    // `peer` names the other end in messages; `peer_subtree` names the ranks that may cause a delay: "rank 4 or
    // ranks 5-7 below it".
    PeerLink(Channel channel, std::string peer, std::string peer_subtree)
        : channel_(std::move(channel)), peer_(std::move(peer)), peer_subtree_(std::move(peer_subtree)) {}

    [[nodiscard]] const std::string& peer() const { return peer_; }
    [[nodiscard]] const std::string& peer_subtree() const { return peer_subtree_; }
    [[nodiscard]] bool is_open() const { return channel_.has_value(); }
    // The peer has sent bye.
    [[nodiscard]] bool has_left() const { return left_; }
    [[nodiscard]] std::size_t queued() const { return channel_ ? channel_->queued() : 0; }
    // The events to poll for; none for a closed link.
    [[nodiscard]] pollfd interest() const;

    // For an open link: queues a frame and sends as much as the socket takes.
    void send(FrameType type, Channel::Parts payload);
    // Sends the abort, or the rest of it when it was sent before.
    void send_abort(std::span<const std::byte> failure);
    void flush();
    // Sends the queued bytes as far as possible without waiting, and closes the link without bye.
    void finish();
    // Sends bye and closes the link, without waiting.
    void leave();
    // The peer has closed the connection.
    void close() { channel_.reset(); }

    // For an open link: receives the bytes that have arrived.
    Channel::Input fill() { return channel_->fill(); }
    // Sorts the received frames up to the next abort, and returns the abort; none if there is none.
    Result<std::optional<Frame>> next_abort();
    // The next frame for the owner.
    std::optional<Frame> take();

private:
    std::optional<Channel> channel_;  // none once it is closed
    std::string peer_;
    std::string peer_subtree_;
    std::deque<Frame> inbox_;
    bool left_ = false;
    bool abort_queued_ = false;
};

// All links of this rank, the failure, and the suspicion that precedes it.
class LinkSet {
public:
    using Index = std::size_t;

    // `me` names this rank in messages: "rank 3 (pid 123 on host x)".
    explicit LinkSet(std::string me) : me_(std::move(me)) {}
    LinkSet(LinkSet&&) = default;  // neither copied nor assigned: the destructor sends
    // Sends bye on all links, without waiting.
    ~LinkSet();

    // See PeerLink for the names.
    Index add(Channel channel, std::string peer, std::string peer_subtree);
    // While this link is open, its peer reports why another link has closed without bye: a rank that learns of the
    // failure earlier may close a connection that it has not read yet. The rank waits for that report for a moment.
    void set_arbiter(Index link) { arbiter_ = link; }
    // Sends the queued bytes as far as possible without waiting, and closes the link without bye.
    void remove(Index link);

    [[nodiscard]] const std::string& me() const { return me_; }
    [[nodiscard]] const std::string& peer(Index link) const { return links_[link].peer(); }
    // Completes "rank 3 closed its connection ...": "during allgather #2".
    void set_activity(std::string activity) { activity_ = std::move(activity); }

    // Queues a frame and sends as much as the socket takes.
    Status send(Index link, FrameType type, Channel::Parts payload);
    // Waits for the next frame of a link.
    Result<Frame> receive(Index link, Deadline deadline);
    // Waits until no link has more than `bytes` queued.
    Status drain(std::size_t bytes, Deadline deadline);
    // Waits for an event on a link or on one of `others`, and handles the links. OK at the deadline too.
    Status exchange(std::span<pollfd> others, Deadline deadline);
    // Makes `cause` the failure, unless there is one already, and sends it on all links. Returns the failure.
    Status fail(Status cause);

private:
    void read(PeerLink& link);
    void dispatch_received(PeerLink& link);
    void on_end(PeerLink& link);
    void fail_as_suspected();
    void broadcast_failure(const PeerLink* except);
    Status peer_left(const PeerLink& link);
    Status timed_out(const std::string& peer, Deadline deadline);

    std::string me_;
    std::string activity_ = "while the job was starting";
    std::vector<PeerLink> links_;
    std::vector<pollfd> polled_;  // kept for its memory
    Status failure_;
    std::optional<Index> arbiter_;
    struct SuspectedFailure {
        Status cause;
        Deadline until;
    };
    // The first link that closed without bye, until the arbiter reports the cause.
    std::optional<SuspectedFailure> suspected_failure_;
};

}  // namespace npushmem::rendezvous
