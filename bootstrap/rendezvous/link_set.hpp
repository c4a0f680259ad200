// A rank's connections to its neighbours in the tree and, while the job starts, to the rendezvous service; and the one
// failure that ends the job. While this rank waits, it reads all links, so a failure on any rank reaches every rank
// that is inside a call, and is forwarded to every other link. One thread at a time.
#pragma once

#include <poll.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/deadline.hpp"

namespace npushmem::rendezvous {

class LinkSet {
public:
    using Index = std::size_t;

    // `me` names this rank in messages: "rank 3 (pid 123 on host x)".
    explicit LinkSet(std::string me) : me_(std::move(me)) {}
    LinkSet(LinkSet&&) = default;
    LinkSet& operator=(LinkSet&&) = delete;
    LinkSet(const LinkSet&) = delete;
    LinkSet& operator=(const LinkSet&) = delete;
    // Sends bye on all links, without waiting.
    ~LinkSet();

    // `peer` names the other end in messages; `peer_subtree` names the ranks that may cause a delay: "rank 4 or
    // ranks 5-7 below it".
    Index add(Channel channel, std::string peer, std::string peer_subtree);
    // While this link is open, its peer reports why another link has closed without bye: a rank that learns of the
    // failure earlier may close a connection that it has not read yet. The rank waits for that report for a moment.
    void set_arbiter(Index link) { arbiter_ = link; }
    // Sends the queued bytes as far as possible without waiting, and closes the link without bye.
    void remove(Index link);

    [[nodiscard]] const std::string& me() const { return me_; }
    [[nodiscard]] const std::string& peer(Index link) const { return links_[link].peer; }
    [[nodiscard]] const Status& failure() const { return failure_; }
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
    // Handles the frames that have arrived, without waiting.
    Status check();
    // Makes `cause` the failure, unless there is one already, and sends it on all links. Returns the failure.
    Status fail(Status cause);

private:
    struct Link {
        std::optional<Channel> channel;  // none once it is closed or removed
        std::string peer;
        std::string peer_subtree;
        std::deque<Frame> inbox;
        bool left = false;      // its peer has sent bye
        bool notified = false;  // of the failure
    };

    [[nodiscard]] pollfd interest(const Link& link) const;
    void read(Link& link);
    void dispatch_received(Link& link);
    void dispatch(Link& link, Frame frame);
    void on_end(Link& link);
    [[nodiscard]] bool arbiter_may_report(const Link& closed) const;
    void fail_as_suspected();
    void on_abort(const Link& from, const Frame& frame);
    void broadcast_failure(const Link* except);
    Status peer_left(const Link& link);
    Status timed_out(const std::string& peer, Deadline deadline);

    std::string me_;
    std::string activity_ = "while the job was starting";
    std::vector<Link> links_;
    std::vector<pollfd> polled_;  // kept for its memory
    Status failure_;
    std::optional<Index> arbiter_;
    struct SuspectedFailure {
        Status cause;
        Deadline until;
    };
    std::optional<SuspectedFailure>
        suspected_failure_;  // the first link that closed without bye, until the arbiter reports the cause
};

}  // namespace npushmem::rendezvous
