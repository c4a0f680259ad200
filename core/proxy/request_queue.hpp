// What the cores have asked of one PE: posted in the order in which it was asked, as soon as the transport takes it;
// many at a time are under way.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/ops/remote_peers.hpp"
#include "core/proxy/request.hpp"

namespace npushmem::proxy {

// Used by one thread.
class RequestQueue {
public:
    // Has `link`, and closes it. `peers` outlives this.
    RequestQueue(RemotePeers& peers, const RemotePeers::Link& link) : peers_(peers), link_(link) {}
    RequestQueue(const RequestQueue&) = delete;
    RequestQueue& operator=(const RequestQueue&) = delete;
    // What is still outstanding is given up.
    ~RequestQueue() { peers_.close(link_); }

    // One for this PE.
    void append(Request request);
    // What was appended before comes before what is appended later. A failure is told to `requester` as one of a
    // request that nobody waits for; the fence itself does not count as a request.
    void fence(const std::shared_ptr<RequesterState>& requester);
    // Counts this PE in `wait` until what was appended so far is complete; not if it is already.
    void add_quiet(const std::shared_ptr<QuietRequest>& wait);
    // Posts, looks what has completed, tells those who asked. True: something has happened.
    bool advance();
    // Nothing waits or is under way, and nobody waits for quiet.
    [[nodiscard]] bool idle() const { return to_post_.empty() && in_flight_.empty() && quiets_.empty(); }
    // Tells everybody who waits that this is why; nothing is done any more. Memory of requests stays until the end.
    void abort(const Status& why);

    [[nodiscard]] bool outstanding() const { return completed_ != appended_; }
    [[nodiscard]] int transport() const { return link_.transport; }

private:
    // What is to be done next for a request.
    enum class Step : unsigned char { fence, operation, fence_of_signal, signal };
    struct Entry {
        Request request;
        Step step = Step::operation;
        std::uint64_t token = 0;
        std::uint64_t result = 0;  // what an atomic operation found; of 32 bits only the lower half is written
    };
    using Entries = std::list<Entry>;  // they stay where they are
    struct PendingQuiet {
        std::uint64_t appended;  // so many must be complete
        std::shared_ptr<QuietRequest> wait;
    };

    [[nodiscard]] Transport& transport_itself() const { return *peers_.named(link_.transport).transport; }
    bool post_some();
    // Code::again: not yet.
    Code post(Entry& entry);
    Code post_fence();
    Code post_operation(Entry& entry);
    Code post_signal(const Entry& entry);
    bool test_some();
    bool poll_quiet();
    void end(Entries& from, Entries::iterator entry, Status outcome);
    static void report(PendingQuiet& pending, const Status& outcome);
    void add_updater(const std::shared_ptr<RequesterState>& requester);
    // To those whose updates it may be of, but for the ones that wait for quiet and hear it so.
    void report_update_failure(const Status& failure);

    RemotePeers& peers_;
    RemotePeers::Link link_;
    Entries to_post_;
    Entries in_flight_;  // oldest first
    Entries spare_;
    Entries failed_;                  // that have failed: the transport may still touch what they hold
    std::list<PendingQuiet> quiets_;  // oldest first
    // Whose updates were taken by the transport since the last quiet that found all well: each may still fail, untold.
    std::vector<std::shared_ptr<RequesterState>> updaters_;
    std::uint64_t appended_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;  // so many were complete at the last quiet
    bool unfenced_ = false;        // something was posted since the last fence that the next operation could overtake
};

}  // namespace npushmem::proxy
