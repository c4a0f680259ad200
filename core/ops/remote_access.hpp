// Operations on PEs whose memory the CPU does not see: through their transport's queue, made, connected and imported
// when the PE is first used. Offsets count from the beginning of a slice.
//
// Any thread: one lock around every call of a transport, because a queue takes one caller at a time; nobody waits while
// holding it.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>
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

class RemoteAccess {
public:
    enum class Completion { local, later };  // return when local memory may be used again, or leave that to quiet

    // Everything referred to outlives this. `timeout` 0: none.
    RemoteAccess(std::span<const NamedTransport> transports, const TransportMap& map, PeerDirectory directory,
                 const Waiter& waiter, Duration timeout);
    RemoteAccess(const RemoteAccess&) = delete;
    RemoteAccess& operator=(const RemoteAccess&) = delete;
    // Destroys queues and releases imported memory; what is still outstanding is given up.
    ~RemoteAccess();

    Status put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion);
    Status get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion);
    // Fills in op.remote; a fetching operation that completes `later` writes *op.result before quiet returns.
    Status atomic(npushmem_atomic op, Completion completion);
    Status put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                      std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation,
                      Completion completion);
    Status fence();
    Status quiet();
    // Lets transports work; reports the first asynchronous error, if there is one.
    Status progress();

    // Called with the PE of each error that a transport tells unasked, and its code; with the lock held. Before the
    // first operation.
    void on_event(std::function<void(int pe, Code code)> listener) { listener_ = std::move(listener); }

    // The mapping of a peer's slice, for transports that map.
    Result<void*> map(int pe);

private:
    struct Peer {
        int transport;
        std::uint64_t remote;
    };
    struct Queue {
        bool open = false;
        std::uint64_t number = 0;
    };

    Result<Peer> peer(int pe);
    // With the lock held.
    Result<Peer> meet(int pe);
    void drive();
    Status open_queue(int transport);
    Transport& transport_of(const Peer& peer) const {
        return *transports_[static_cast<std::size_t>(peer.transport)].transport;
    }
    std::uint64_t queue_of(const Peer& peer) const { return queues_[static_cast<std::size_t>(peer.transport)].number; }

    template <class Post>
    Status post(const Peer& peer, int pe, const char* what, Completion completion, Post&& post_once);
    template <class Step>
    Status repeat(int transport, int pe, const char* what, Step&& step);
    Status put_then_signal(const Peer& peer, const npushmem_put_signal& op, Completion completion);
    Status event_of(const NamedTransport& named) const;
    bool is_open(std::size_t transport);
    Status on_every_queue(const char* what, Code (Transport::*call)(std::uint64_t));

    std::span<const NamedTransport> transports_;
    const TransportMap& map_;
    PeerDirectory directory_;
    const Waiter& waiter_;
    Duration timeout_;
    std::mutex lock_;
    std::vector<Queue> queues_;  // one per transport
    std::unordered_map<int, Peer> peers_;
    std::function<void(int pe, Code code)> listener_;
};

}  // namespace npushmem
