// The proxy's work: takes requests, spreads them over the PEs' queues, and gets on with all of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/proxy/request_queue.hpp"

namespace npushmem::proxy {

// Used by one thread.
class Worker {
public:
    // `peers` outlives this.
    explicit Worker(RemotePeers& peers) : peers_(peers) {}
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // Closes the queues; what is still outstanding is given up.
    ~Worker() = default;

    // Connects to the PE if needed. A request that cannot be executed fails at its requester.
    void accept(Request request);
    // Lets everything get on. True: something has happened.
    bool advance();
    // Something waits or is under way.
    [[nodiscard]] bool busy() const { return !active_.empty(); }
    // Tells everybody who waits that this is why. Nothing may be asked afterwards.
    void abort(const Status& why);

private:
    Result<RequestQueue*> queue_of(int pe);
    void activate(RequestQueue& queue);
    void accept_fence(const Request& request);
    void accept_quiet(Request& request);
    static void reject(const Request& request, Status why);
    // The answers to quiets that all their PEs have completed.
    bool answer_quiets();
    // The first asynchronous error of the transports that were used.
    Status events();

    RemotePeers& peers_;
    std::map<int, std::unique_ptr<RequestQueue>> queues_;  // by PE
    std::vector<RequestQueue*> active_;                    // those that are not idle
    std::vector<std::shared_ptr<QuietRequest>> quiets_;
    std::uint64_t transports_ = 0;  // of the queues, one bit each
};

}  // namespace npushmem::proxy
