// SPDX-License-Identifier: BSD-3-Clause
// A transport over any Wire. It implements queues, tokens, fences, atomics, signals, error codes and deadlines for all
// network libraries. It asks the target's handler, by messages, for operations that the wire lacks.
//
// One lock guards everything, including the wire. A progress thread drives the transport while the program computes. It
// starts with the first peer that could send something.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "transports/network/initiator.hpp"
#include "transports/network/message_keys.hpp"
#include "transports/network/network_memory.hpp"
#include "transports/network/outgoing.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/peer_monitor.hpp"
#include "transports/network/progress_driver.hpp"
#include "transports/network/wire_event_handler.hpp"

namespace npushmem::network {

// The capabilities of a network transport, for its table.
constexpr std::uint64_t offered_capabilities =
    NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REMOTE |
    NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_TARGET_PROGRESS | NPUSHMEM_CAP_PUT_STRIDED;

// All PEs of a job need equal settings.
struct NetworkSettings {
    bool thread = true;  // use a progress thread
    // A peer that owes an answer and has been silent for this long is reported as lost; 0: never.
    std::chrono::milliseconds peer_timeout{30'000};
    // The interval at which the thread checks for silent peers.
    std::chrono::milliseconds tick{500};
    std::uint32_t lanes = 16;  // maximum per peer; at least 1
    // The maximum wait at the end for a peer that does not receive: it may be stopped.
    std::chrono::milliseconds max_goodbye{2'000};

    // The offered capabilities that a peer has with these settings. The thread serves the peers of a PE that makes no
    // call, and detects peers that have been silent for too long.
    [[nodiscard]] constexpr std::uint64_t capabilities() const {
        std::uint64_t out = offered_capabilities;
        if (!thread) out &= ~NPUSHMEM_CAP_TARGET_PROGRESS;
        if (!thread || peer_timeout == std::chrono::milliseconds::zero()) out &= ~NPUSHMEM_CAP_REPORTS_DEATH;
        return out;
    }
};

// Combines the parts of a network transport, and takes its lock. It is one class because the Transport interface has
// these functions: each passes its call to the part that implements it.
class NetworkTransport : public Transport {
public:
    // `wire` must be open.
    NetworkTransport(const Host& host, const npushmem_transport_params& params, std::unique_ptr<Wire> wire,
                     NetworkSettings settings);
    // Announces the end to the peers to which this PE has sent messages, so that it is no loss for them.
    ~NetworkTransport() override;

    Result<Bytes> address() override;
    // Also records the peer, and starts the thread.
    Reach reach(const npushmem_peer& peer) override;
    Status connect(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Code deregister_memory(std::uint64_t region) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Code release_memory(std::uint64_t remote) override;

    Result<std::uint64_t> create_queue() override;
    // Waits, for the peer timeout at most, until the network no longer uses the caller's memory.
    Code destroy_queue(std::uint64_t queue) override;
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override;
    Code fence(std::uint64_t queue) override;
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;
    Code poll_event(npushmem_event& out) override;
    Code forget(int pe) override;
    Code report_arrivals(void (*arrived)(void* context), void* context) override;

protected:
    // Replaces the constructor's wire. Call it before anything else.
    void use_wire(std::unique_ptr<Wire> wire) { wire_ = std::move(wire); }

private:
    using Lock = std::unique_lock<std::mutex>;

    Status start_thread();
    // Drives the wire until the condition is false, or the deadline has passed and it was driven some times.
    template <class Condition>
    void drive_while(Lock& guard, std::chrono::steady_clock::time_point deadline, const Condition& condition);
    // Returns the peers to which the goodbye is sent or queued.
    std::vector<int> send_goodbyes();
    // True while the goodbye to one of the peers may be lost by closing the wire.
    bool has_unsent_goodbyes(const std::vector<int>& peers);

    int my_pe_;
    NetworkSettings settings_;
    std::mutex lock_;  // guards the members below
    // The other members refer to this pointer, because use_wire replaces the wire.
    std::unique_ptr<Wire> wire_;
    EventQueue events_;
    PeerMonitor peers_;
    MessageKeys keys_;
    OutgoingOperations operations_;
    NetworkMemory memory_;
    WireEventHandler event_handler_;
    PeerLanes lanes_;
    DeliveryOrder order_;
    ProgressDriver driver_;
    Initiator initiator_;
};

// Reads the settings of a network transport: <PREFIX>PROGRESS_THREAD, <PREFIX>PEER_TIMEOUT, <PREFIX>LANES.
Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix);
// Reads <PREFIX>NATIVE_ATOMICS. True: always. Auto means false: these libraries cannot say that their atomics are
// atomic with those of the target's CPU.
Result<bool> read_native_atomics(const Host& host, const std::string& prefix);

}  // namespace npushmem::network
