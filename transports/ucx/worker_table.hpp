// SPDX-License-Identifier: BSD-3-Clause
// The workers of all lanes and the connections to the peers. The first use of a lane opens its worker; the first use of
// a lane to a peer connects. Peers know the address of the first worker only; the other workers only send.
#pragma once

#include <ucp/api/ucp.h>

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/poller.hpp"
#include "transports/ucx/worker.hpp"

namespace npushmem::ucx {

class WorkerTable {
public:
    // `options_text` completes messages about failed connections.
    WorkerTable(EventQueue& events, std::string options_text)
        : events_(events), options_text_(std::move(options_text)) {}
    WorkerTable(const WorkerTable&) = delete;
    WorkerTable& operator=(const WorkerTable&) = delete;
    // UCX 1.13 aborts the peer's process when a connection is closed while it is being established. So this waits for
    // such connections, up to a deadline, because the peer may be dead.
    ~WorkerTable();

    // Opens the first worker. The table must not outlive the context.
    Status open(ucp_context_h context);
    Result<Bytes> address() const;
    Status add_peer(int pe, std::span<const std::byte> address);
    [[nodiscard]] std::vector<int> peers() const;

    // Null on failure; sets failure().
    ucp_ep_h endpoint_for(network::LaneId lane_id);
    // Call endpoint_for first. Null on failure; sets failure().
    ucp_rkey_h key_for(const network::RemoteAddress& place);
    [[nodiscard]] const Status& failure() const { return failure_; }

    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key);
    void release_key(std::uint64_t number);
    // Disconnects the peer's endpoint on the lane, and closes the lane's worker when it has no endpoint left. False:
    // there was no connection.
    bool close(network::LaneId lane_id);

    // True when it made progress.
    bool progress();
    // Readable when a worker or the event queue has work.
    [[nodiscard]] int descriptor() const { return poller_.fd(); }
    // False: a worker has work.
    [[nodiscard]] bool arm();

private:
    struct ImportedKey {
        int pe;
        Bytes packed;
    };

    Status set_message_handler();
    Status watch(const Worker& worker);
    Status open_lane(Worker& worker);
    Status connect(Worker& worker, network::LaneId lane_id);
    void record_failure(const Status& why);

    EventQueue& events_;
    std::string options_text_;  // for people
    ucp_context_h context_ = nullptr;
    Poller poller_;                             // watches the workers and the event queue
    std::vector<Worker> workers_;               // not open: closed or unused
    std::unordered_map<int, Bytes> addresses_;  // of the added peers
    std::unordered_map<std::uint64_t, ImportedKey> keys_;
    std::uint64_t last_key_ = 0;
    Status failure_;
};

}  // namespace npushmem::ucx
