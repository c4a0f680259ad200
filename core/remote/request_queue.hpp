// SPDX-License-Identifier: BSD-3-Clause
// The queue of requests to one PE. It posts them in order, as soon as the transport accepts them; many are in flight at
// a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/remote/remote_queue.hpp"
#include "core/remote/request.hpp"

namespace npushmem::proxy {

// Used by one thread.
class RequestQueue {
public:
    // Owns `link` and closes it. `peers` outlives this.
    RequestQueue(RemotePeers& peers, const RemotePeers::Link& link) : queue_(peers, link) {}
    RequestQueue(const RequestQueue&) = delete;
    RequestQueue& operator=(const RequestQueue&) = delete;
    // Cancels outstanding operations.
    ~RequestQueue() = default;

    // Appends a request to this PE.
    void append(Request request);
    // Orders earlier requests before later ones. Reports a failure to `requester` like that of a request that nobody
    // waits for; the fence itself does not count as a request.
    void fence(const std::shared_ptr<RequesterState>& requester);
    // Counts this PE in `wait` until all requests so far are complete, unless they already are.
    void add_quiet(const std::shared_ptr<QuietRequest>& wait);
    // Posts requests, polls for completions and reports results. True: there was progress.
    bool advance();
    // Returns whether no request is queued or in flight and no quiet waits.
    [[nodiscard]] bool idle() const { return to_post_.empty() && in_flight_.empty() && quiets_.empty(); }
    // Fails all waiting requests with this status; posts no more. The requests' memory stays allocated.
    void abort(const Status& why);

private:
    struct Entry {
        Request request;
        RemoteQueue::PutSignalProgress progress;  // of a put with signal
        std::uint64_t token = 0;
        std::uint64_t result = 0;  // fetched by an atomic; 32-bit operations write only the lower half
    };
    using Entries = std::list<Entry>;  // a list: addresses stay valid
    struct PendingQuiet {
        std::uint64_t appended;  // number of requests to complete
        std::shared_ptr<QuietRequest> wait;
    };

    [[nodiscard]] bool outstanding() const { return completed_ != appended_; }
    bool post_some();
    // Returns Code::again when the transport does not accept it yet; continues it at the next call.
    Code post(Entry& entry);
    bool test_some();
    // The outcome of a request whose post or test returned `code`.
    [[nodiscard]] Status outcome_of(const Entry& entry, Code code) const;
    bool poll_quiet();
    void end(Entries& from, Entries::iterator entry, Status outcome);
    static void report(PendingQuiet& pending, const Status& outcome);
    void add_updater(const std::shared_ptr<RequesterState>& requester);
    // Reports the failure to requesters whose updates may have failed, except those that wait for quiet and receive it
    // there.
    void report_update_failure(const Status& failure);

    Entries to_post_;
    Entries in_flight_;  // oldest first
    Entries spare_;
    Entries failed_;                  // failed requests: the transport may still access their memory
    std::list<PendingQuiet> quiets_;  // oldest first
    // Requesters of updates accepted since the last successful quiet. Each update may still fail without a report.
    std::vector<std::shared_ptr<RequesterState>> updaters_;
    std::uint64_t appended_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;  // number of requests complete at the last quiet
    RemoteQueue queue_;            // last: until it is closed, the transport may access the memory of requests
};

}  // namespace npushmem::proxy
