// SPDX-License-Identifier: BSD-3-Clause
// The interface of a network library, from which NetworkTransport makes a transport: writes, reads and short messages
// between PEs. NetworkTransport implements everything else (queues, tokens, fences, atomics, signals, errors,
// deadlines) once for all networks.
//
// One thread at a time calls a Wire; NetworkTransport's lock ensures this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/nic_rails.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

// The event that proves that a write has reached the target's memory.
enum class Delivery {
    in_order,                // the answer to a later message: all operations of a lane take effect in order
    on_completion,           // the write's completion
    on_flush,                // the completion of a later Wire::flush
    in_order_on_completion,  // the write's completion; all operations of a lane take effect in order
};

struct WireTraits {
    std::string name;  // for people: "tcp;ofi_rxm on eth0"
    // Two PEs are compatible when these are equal: library, provider, format.
    std::string protocol;
    Delivery delivery = Delivery::on_completion;
    std::size_t inject_bytes = 0;   // maximum size of a write that no longer needs its source when it returns
    std::size_t message_bytes = 0;  // maximum size of a message
    // The operations that Wire::atomic carries out, as bits. Each is also atomic with those of the target's CPU.
    std::uint32_t atomic_32 = 0;
    std::uint32_t atomic_64 = 0;
    // The signals that Wire::write_signal carries out: bits NPUSHMEM_SIGNAL_x. Requires a delivery in order.
    std::uint32_t signals = 0;
    std::size_t write_as_message_bytes = 0;  // maximum size of a write that is faster as a message
    // With a delivery in order: requests by message are handled before later writes of the lane take effect.
    bool messages_in_order = false;
    // Peers change this PE's memory only while it calls Wire::progress, for which the descriptor becomes readable. (Or
    // while it makes another call of the wire that is busy: libfabric when it has no room, UCX when it closes a lane.)
    bool arrives_in_progress = false;
    // With arrives_in_progress: Wire::progress may write to memory although it returns false.
    bool writes_silently = false;
    // Typical cost of the network, as in npushmem_reach; 0: unknown.
    std::uint64_t latency_ns = 0;
    std::uint64_t bytes_per_second = 0;
};

// Typical latencies, by which the host compares transports. Through the kernel's TCP the CPU limits the transfer, not
// the link, so that the same numbers apply to all libraries over it.
inline constexpr std::uint64_t tcp_latency_ns = 25'000;
inline constexpr std::uint64_t tcp_bytes_per_second = 2'500'000'000;
inline constexpr std::uint64_t rdma_latency_ns = 2'000;

// Identifies a posted operation until it completes. `scratch` comes first, for libraries that need memory of their own
// for each operation.
struct WireContext {
    enum class Owner : std::uint8_t { transport, wire };
    std::array<void*, 8> scratch{};
    Owner owner = Owner::transport;
    int pe = -1;  // target of the operation; only MultiRailWire sets it
};

// One of a PE's lanes to a peer. Lanes are independent: ordering, completion and failures of one do not affect another.
// Lane 0 carries everything that belongs to no queue, and exists from add_peer on. First use creates the other lanes.
struct LaneId {
    int pe = -1;
    std::uint32_t lane = 0;

    friend bool operator==(const LaneId&, const LaneId&) = default;
};

// Whether a lane accepts operations now.
enum class Readiness {
    ready,
    connecting,
    unreachable,  // it is lost, or the peer has not answered for long
};

// The remote end of a transfer. `base` is the address that the target has registered.
struct RemoteAddress {
    LaneId lane_id;
    std::uint64_t key;  // from import_key; valid on all lanes
    std::uint64_t base;
    std::uint64_t offset;
};

// Receives the events of Wire::progress.
class WireListener {
public:
    virtual ~WireListener() = default;
    // When `code` is not ok, `why` is a clause for people.
    virtual void completed(WireContext& context, Code code, const std::string& why) = 0;
    virtual void arrived(std::span<const std::byte> message) = 0;
    // Reports a lost lane. The whole peer is lost when this is lane 0 or when the code says so.
    virtual void lost(LaneId lane_id, Code code, const std::string& why) = 0;
    // The peer has closed its transport normally, and what it sent has arrived.
    virtual void closed(int /*pe*/) {}
    // The peer is alive: something of it has arrived, which need not be a message, or it has taken something.
    virtual void active(int /*pe*/) {}
};

// A port of this PE or of a peer.
struct Port {
    RailId rail;
    std::string name;  // for people: "mlx5_0:1" for this PE, "10.0.0.2" for a peer
};

enum class WakeEvents { arrivals, arrivals_and_completions };

struct WireMemory {
    std::uint64_t number = 0;
    Bytes key;  // for the peers' import_key
};

class Wire {
public:
    Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;
    // Afterwards no posted operation touches memory or is reported.
    virtual ~Wire() = default;

    // The wire sets the traits before `address` returns; they do not change afterwards.
    [[nodiscard]] const WireTraits& traits() const { return traits_; }
    virtual Result<Bytes> address() = 0;
    // Describes, for people, how this PE reaches the peer with this address. Fails with Code::protocol as `add_peer`
    // does.
    virtual Result<std::string> route_to(int /*pe*/, std::span<const std::byte> /*address*/) { return traits_.name; }
    // Makes the peer usable in the calls below. Does not block.
    virtual Status add_peer(int pe, std::span<const std::byte> address) = 0;

    // For wires with one port each: their port, valid once `address` has returned, and a peer's port, from its address.
    // The latter fails with Code::protocol.
    [[nodiscard]] virtual Port port() const { return {}; }
    [[nodiscard]] virtual Result<Port> port_of(std::span<const std::byte> /*address*/) const { return Port{}; }

    virtual Result<WireMemory> register_memory(void* base, std::uint64_t bytes) = 0;
    virtual void deregister_memory(std::uint64_t number) = 0;
    virtual Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) = 0;
    virtual void release_key(std::uint64_t key) = 0;

    // Code::ok: posted; the listener gets the completion of `context`. Code::again: no room now. Any other code: the
    // lane is lost, as with WireListener::lost, and last_error() gives the reason.
    virtual Code write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) = 0;
    virtual Code read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) = 0;
    // One of the operations of the traits. Completes as a write does; a fetching one when its result is in place.
    virtual Code atomic(const RemoteAddress& /*at*/, const npushmem_atomic& /*op*/, WireContext& /*context*/) {
        return Code::unsupported;
    }
    // A write, possibly of 0 bytes, followed by a signal of 8 bytes at `at`, at the same peer. One of the signals of
    // the traits. Completes as a write does.
    virtual Code write_signal(const RemoteAddress& /*to*/, const void* /*from*/, std::uint64_t /*bytes*/,
                              const RemoteAddress& /*at*/, std::uint64_t /*signal*/, WireContext& /*context*/) {
        return Code::unsupported;
    }
    // Completes when all earlier writes and atomics on the lane are delivered. For Delivery::on_flush.
    virtual Code flush(LaneId /*lane_id*/, WireContext& /*context*/) { return Code::unsupported; }
    // Copies the message. Messages on one lane arrive complete and in order.
    virtual Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) = 0;
    // True while destroying the wire could lose messages that it has accepted for peers that are not forgotten.
    [[nodiscard]] virtual bool has_unsent_messages() const { return false; }
    [[nodiscard]] virtual std::string last_error() const { return {}; }
    // Starts connecting the lane if it is not connected.
    virtual Readiness readiness(LaneId /*lane_id*/) { return Readiness::ready; }
    // For in-order deliveries: true when all operations posted on this lane take effect before later ones. False: later
    // ones may overtake some of them until these have completed.
    [[nodiscard]] virtual bool in_order(LaneId /*lane_id*/) const { return true; }
    // The peer, which may not have been added, is no longer used: its operations in flight complete soon, with any
    // code, or not at all. What it has sent and has not arrived yet may be dropped. May be called repeatedly, and from
    // within progress.
    virtual void forget(int /*pe*/) {}
    // For silent peers, when sends only return Code::again: starts to find out whether the peer's host refuses
    // connections to it, because its process has ended. Does not block.
    virtual void start_probe(int /*pe*/) {}
    // Ends the peer's probe, if there is one. True: the host has refused the connection. Does not block.
    [[nodiscard]] virtual bool end_probe(int /*pe*/) { return false; }
    // The lane is no longer used; not for lane 0, and not from within progress. Releases the lane's resources that no
    // other peer uses. In-flight operations may complete later or not at all. The next use creates the lane again.
    virtual void close(LaneId /*lane_id*/) {}

    // Returns true when it made progress.
    virtual bool progress(WireListener& listener) = 0;
    // A descriptor that is readable when progress has work; -1: there is none.
    [[nodiscard]] virtual int descriptor() const { return -1; }
    // A descriptor that is readable when a thread must call progress soon, even if other threads do; -1: there is none.
    [[nodiscard]] virtual int alarm() const { return -1; }
    // Prepares to wait for the descriptor. False: call progress first. `what` names the events that must wake the
    // waiting thread: arrivals from peers, and optionally completions. A wire may wake it for others, and does while it
    // has accepted work that it has not posted completely.
    virtual bool prepare_to_wait(WakeEvents /*what*/) { return true; }

protected:
    WireTraits traits_;
};

}  // namespace npushmem::network
