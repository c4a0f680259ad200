// The PEs whose memory the CPU does not see, as all contexts share them: connected and imported when the first context
// uses them, through their transports.
//
// Any thread. What sets something up has one lock; what drives the transports and asks them for errors has another,
// because the calls of the data path, on queues of different contexts, need neither.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/parse.hpp"
#include "core/base/wait.hpp"
#include "core/map/transport_map.hpp"

namespace npushmem {

// Where the peers are: what start-up exchanged.
struct PeerDirectory {
    std::function<npushmem_peer(int transport, int pe)> peer;
    std::function<std::span<const std::byte>(int transport, int pe)> handle;  // of the peer's slice
};

class RemotePeers {
public:
    // A way to a PE, for one user of it.
    struct Link {
        int pe = -1;
        int transport = -1;
        std::uint64_t remote = 0;  // the PE's slice, imported
        std::uint64_t queue = 0;   // this user's alone
    };

    // Everything referred to outlives this. `timeout` 0: none.
    RemotePeers(std::span<const NamedTransport> transports, const TransportMap& map, PeerDirectory directory,
                const Waiter& waiter, Duration timeout);
    RemotePeers(const RemotePeers&) = delete;
    RemotePeers& operator=(const RemotePeers&) = delete;
    // Releases imported memory. All links have been closed.
    ~RemotePeers();

    // Connects to the PE if no context has, and creates a queue.
    Result<Link> open(int pe);
    // Destroys the queue; what is still outstanding there is given up.
    void close(const Link& link);
    // The mapping of a peer's slice, for transports that map; takes no queue.
    Result<void*> map(int pe);

    // PEs that a context has used, or that are mapped.
    [[nodiscard]] std::vector<int> connected();

    // Lets all transports in use work; when another thread does, nothing.
    void progress_transports();
    // The same; reports the first asynchronous error, if there is one.
    Status progress();
    // The transport's next asynchronous error, if there is one.
    Status event_of(int transport);
    // Why `what` failed with `code` on a link: in the transport's own words, if it has some.
    Status failure_of(const Link& link, const char* what, Code code);
    // Code::unsupported: the transport that serves the PE does not do this operation.
    [[nodiscard]] Status supports(const npushmem_atomic& op) const;
    // Called with the PE of each error that a transport tells unasked, and its code; with a lock held. Before the
    // first operation.
    void on_event(std::function<void(int pe, Code code)> listener) { listener_ = std::move(listener); }

    [[nodiscard]] const NamedTransport& named(int transport) const {
        return transports_[static_cast<std::size_t>(transport)];
    }
    [[nodiscard]] const Reach& reach(int pe) const { return map_.route(pe).reach; }
    [[nodiscard]] const Waiter& waiter() const { return waiter_; }
    [[nodiscard]] Duration timeout() const { return timeout_; }

private:
    struct Peer {
        int transport;
        std::uint64_t remote;
    };

    // With the lock of the set-up held.
    Result<Peer> connect(int pe);
    // With the other lock held.
    void progress_all();
    Status next_event(const NamedTransport& named);
    [[nodiscard]] bool in_use(std::size_t transport) const { return (map_.transports_in_use() >> transport & 1U) != 0; }

    std::span<const NamedTransport> transports_;
    const TransportMap& map_;
    PeerDirectory directory_;
    const Waiter& waiter_;
    Duration timeout_;
    std::mutex setup_lock_;  // of the transports' set-up functions
    std::unordered_map<int, Peer> peers_;
    std::mutex progress_lock_;  // of the transports' progress and events, and of what follows
    npushmem_event event_{};    // empty; every wait asks often, and most often there is none
    std::function<void(int pe, Code code)> listener_;
};

}  // namespace npushmem
