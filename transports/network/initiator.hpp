// SPDX-License-Identifier: BSD-3-Clause
// The origin's side of operations: puts, gets, atomics and signals, over the wire or as requests to the target's
// handler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "transports/network/network_memory.hpp"
#include "transports/network/outgoing.hpp"
#include "transports/network/peer_lanes.hpp"
#include "transports/network/progress_driver.hpp"

namespace npushmem::network {

// Checks and posts operations. An operation that the wire has not is a request to the target's handler. The transport's
// lock guards it.
class Initiator {
public:
    Initiator(int my_pe, const std::unique_ptr<Wire>& wire, const PeerMonitor& peers, PeerLanes& lanes,
              NetworkMemory& memory, OutgoingOperations& operations, DeliveryOrder& order, ProgressDriver& driver)
        : my_pe_(my_pe),
          wire_(wire),
          peers_(peers),
          lanes_(lanes),
          memory_(memory),
          operations_(operations),
          order_(order),
          driver_(driver) {}

    // For operations of kind write and read.
    Code rma(Operation::Kind kind, std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token);
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token);
    // Needs messages that hold NPUSHMEM_PUT_STRIDED_MAX bytes and the request. Complete when it returns.
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token);

private:
    // The parts of an operation that has been checked.
    struct Target {
        OutgoingQueue* queue = nullptr;
        const RemoteRegion* remote = nullptr;
        Flow* flow = nullptr;
    };
    using PostKind = DeliveryOrder::PostKind;

    Code resolve_target(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset, std::uint64_t bytes,
                        Target& out);
    template <class PostOnWire>
    Code transfer(Flow& flow, Operation& operation, PostOnWire&& post);
    // Sends a request that gets no answer.
    Code send_request(Flow& flow, std::span<const std::byte> request, std::span<const std::byte> data = {});
    Code request_put(const Target& target, const npushmem_rma& op);
    Code request_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token);
    Code request_put_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op);
    Code wire_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token);
    Code wire_put_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op,
                         std::uint64_t* token);
    // The signal alone, as a request.
    [[nodiscard]] AtomicRequest signal_request(const Target& target, const RemoteRegion& signal,
                                               const npushmem_put_signal& op) const;
    Code put_then_signal(const Target& target, const RemoteRegion& signal, const npushmem_put_signal& op,
                         std::uint64_t* token);

    int my_pe_;
    const std::unique_ptr<Wire>& wire_;
    const PeerMonitor& peers_;
    PeerLanes& lanes_;
    NetworkMemory& memory_;
    OutgoingOperations& operations_;
    DeliveryOrder& order_;
    ProgressDriver& driver_;
};

}  // namespace npushmem::network
