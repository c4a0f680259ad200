// What a network library must offer so that NetworkTransport can make a transport of it: writes, reads and short
// messages between PEs. Everything else (queues, tokens, fences, atomics, signals, errors, deadlines) is the same for
// all networks and done once, above this.
//
// One thread at a time calls a Wire; NetworkTransport's lock sees to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/nic_rails.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::network {

// What tells that a write has arrived in the target's memory?
enum class Delivery {
    in_order,       // everything posted on one lane takes effect in this order: an answer to a later message tells
    on_completion,  // the write's completion
    on_flush,       // the completion of a later Wire::flush
    in_order_on_completion,  // the write's completion, and everything posted on one lane takes effect in order
};

struct WireTraits {
    std::string name;  // for people: "tcp;ofi_rxm on eth0"
    // PEs understand each other when these are equal: library, provider, format.
    std::string protocol;
    Delivery delivery = Delivery::on_completion;
    std::size_t inject_bytes = 0;   // a write of at most so many bytes has let go of its source when it returns
    std::size_t message_bytes = 0;  // longest message
    // Atomic operations that Wire::atomic carries out, each atomic with those of the target's CPU as well.
    std::uint32_t atomic_32 = 0;
    std::uint32_t atomic_64 = 0;
    // Bit NPUSHMEM_SIGNAL_x: Wire::write_signal carries it out. With Delivery::in_order_on_completion.
    std::uint32_t signals = 0;
    std::size_t write_as_message_bytes = 0;  // a write of at most so many bytes gets there sooner as a message
};

// What a posted operation is known by until it completes. Libraries that want memory of their own for each operation
// find it at the beginning.
struct WireContext {
    enum class Owner : std::uint8_t { transport, wire };
    std::array<void*, 8> scratch{};
    Owner owner = Owner::transport;
    int pe = -1;  // that the operation is for; set by MultiRailWire alone
};

// One of a PE's lanes to a peer. Lanes have nothing to do with each other: neither is ordered behind what goes over
// another, nor waits for it, nor is lost with it. Lane 0 is the one that everything which belongs to no queue goes
// over; it is there from add_peer to the end. The others are made by their first use.
struct LaneId {
    int pe = -1;
    std::uint32_t lane = 0;

    friend bool operator==(const LaneId&, const LaneId&) = default;
};

// Can something be posted on a lane at once?
enum class Readiness {
    ready,
    connecting,
    unreachable,  // it is lost, or nobody has answered for long
};

// Where a transfer goes: `base` is what the target's register_memory was given.
struct RemoteAddress {
    LaneId lane_id;
    std::uint64_t key;  // of import_key, good for all lanes
    std::uint64_t base;
    std::uint64_t offset;
};

// What progress has to tell.
class WireListener {
public:
    virtual ~WireListener() = default;
    // `code` not ok: `why` is a clause for people.
    virtual void completed(WireContext& context, Code code, const std::string& why) = 0;
    virtual void arrived(std::span<const std::byte> message) = 0;
    // Nothing will get through any more: on this lane, or to this peer where the code, or lane 0, means the peer.
    virtual void lost(LaneId lane_id, Code code, const std::string& why) = 0;
};

// A port of this PE or of a peer.
struct Port {
    RailId rail;
    std::string name;  // for people: "mlx5_0:1" of this PE's, "10.0.0.2" of a peer's
};

enum class WakeEvents { arrivals, arrivals_and_completions };

struct WireMemory {
    std::uint64_t number = 0;
    Bytes key;  // for import_key of the peers
};

class Wire {
public:
    Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;
    // Nothing that was posted touches memory or is told of any more.
    virtual ~Wire() = default;

    // Filled in by the wire before `address` returns; the same from then on.
    [[nodiscard]] const WireTraits& traits() const { return traits_; }
    virtual Result<Bytes> address() = 0;
    // How this PE reaches the peer with this address, for people. Fails with Code::protocol as `add_peer` does.
    virtual Result<std::string> route_to(int /*pe*/, std::span<const std::byte> /*address*/) { return traits_.name; }
    // From here on the peer may be named in the calls below. Waits for nobody.
    virtual Status add_peer(int pe, std::span<const std::byte> address) = 0;

    // Of wires that have one port each: that port, once `address` has returned, and the port of a peer, by its address,
    // which fails with Code::protocol.
    [[nodiscard]] virtual Port port() const { return {}; }
    [[nodiscard]] virtual Result<Port> port_of(std::span<const std::byte> /*address*/) const { return Port{}; }

    virtual Result<WireMemory> register_memory(void* base, std::uint64_t bytes) = 0;
    virtual void deregister_memory(std::uint64_t number) = 0;
    virtual Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) = 0;
    virtual void release_key(std::uint64_t key) = 0;

    // Code::ok: posted, `context` will be told of. Code::again: no room now. Anything else: the lane is lost, as the
    // listener is told of it otherwise, and last_error() says more.
    virtual Code write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) = 0;
    virtual Code read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) = 0;
    // One of the traits' operations. Completes as a write does, a fetching one when its result is in place.
    virtual Code atomic(const RemoteAddress& /*at*/, const npushmem_atomic& /*op*/, WireContext& /*context*/) {
        return Code::unsupported;
    }
    // A write, of no bytes perhaps, and then 8 bytes at `at`, of the same peer. One of the traits' signals; completes
    // as a write does.
    virtual Code write_signal(const RemoteAddress& /*to*/, const void* /*from*/, std::uint64_t /*bytes*/,
                              const RemoteAddress& /*at*/, std::uint64_t /*signal*/, WireContext& /*context*/) {
        return Code::unsupported;
    }
    // Completes when all earlier writes and atomics on the lane are delivered. With Delivery::on_flush.
    virtual Code flush(LaneId /*lane_id*/, WireContext& /*context*/) { return Code::unsupported; }
    // Copies. Messages on one lane arrive whole and in order.
    virtual Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) = 0;
    [[nodiscard]] virtual std::string last_error() const { return {}; }
    // Starts to connect the lane, if it is not connected.
    virtual Readiness readiness(LaneId /*lane_id*/) { return Readiness::ready; }
    // With a delivery in order: does all that has been posted on this lane take effect before what is posted next?
    // False: some of it may be overtaken until it has completed.
    [[nodiscard]] virtual bool in_order(LaneId /*lane_id*/) const { return true; }
    // Nobody uses the peer any more: what is under way to it is to complete soon, with whatever code. May be called
    // from within progress.
    virtual void forget(int /*pe*/) {}
    // Nobody uses this lane to this peer any more; not lane 0, and not from within progress. What it takes is given
    // back, as far as no other peer is reached by it. Of what is under way the wire may tell later, or never. Its next
    // use makes it anew.
    virtual void close(LaneId /*lane_id*/) {}

    // True: something happened.
    virtual bool progress(WireListener& listener) = 0;
    // Readable when progress has something to do; -1: there is no such descriptor.
    [[nodiscard]] virtual int descriptor() const { return -1; }
    // May a thread wait for the descriptor now? False: call progress first. The thread waits for what peers send and,
    // if told so, that what was posted completes; a wire may wake the waiting thread for either all the same, and does
    // when a part of what it took has still to be posted.
    virtual bool prepare_to_wait(WakeEvents /*what*/) { return true; }

protected:
    WireTraits traits_;
};

}  // namespace npushmem::network
