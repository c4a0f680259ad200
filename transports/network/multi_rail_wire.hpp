// SPDX-License-Identifier: BSD-3-Clause
// Several ports of a PE as one wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/network/rails.hpp"
#include "transports/network/striped_transfers.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

// Combines several wires of one kind, for a PE with several ports: its rails. pair_ports decides which port of a PE is
// connected to which port of its peer. Unpaired ports are not used between the two.
//
// Each lane has a rail, which carries its short operations. Long writes and reads are striped over all rails. While a
// striped write is in flight, in_order() is false for its lane, and callers that need the order wait for completions.
//
// The peer depends on the first rail: without it the peer is lost. When another rail is lost, only these lanes are
// lost: lanes assigned to it, and lanes with a write in flight that has a stripe there. If this includes lane 0, the
// peer is lost. Later operations use the other rails.
//
// A lost lane is reported when none of its operations is in flight over other rails any more, because the report
// returns the memory to its owner. Until then the lane starts no operation, and posting returns Code::again.
//
// Addresses and keys are those of the rails, concatenated and of equal length. A peer with a single port, which does
// not use this class, takes the first.
//
// It is one class because the Wire interface has these functions: each chooses the rails and passes the call on.
class MultiRailWire final : public Wire {
public:
    using Rail = Rails::Rail;
    // Two or more wires of the same protocol with Delivery::in_order_on_completion. Operations of at least
    // `stripe_bytes` are split; 0: none.
    MultiRailWire(int my_pe, std::vector<Rail> rails, std::uint64_t stripe_bytes);

    Result<Bytes> address() override;
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<WireMemory> register_memory(void* base, std::uint64_t bytes) override {
        return memory_.register_memory(base, bytes);
    }
    void deregister_memory(std::uint64_t number) override { memory_.deregister_memory(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override {
        return memory_.import_key(pe, key);
    }
    void release_key(std::uint64_t key) override { memory_.release_key(key); }
    Code write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) override;
    Code read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) override;
    Code atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) override;
    Code write_signal(const RemoteAddress& to, const void* from, std::uint64_t bytes, const RemoteAddress& at,
                      std::uint64_t signal, WireContext& context) override;
    Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] bool has_unsent_messages() const override;
    [[nodiscard]] std::string last_error() const override { return connections_.last_error(); }
    Readiness readiness(LaneId lane_id) override;
    [[nodiscard]] bool in_order(LaneId lane_id) const override { return lanes_.in_order(lane_id); }
    void forget(int pe) override;
    void start_probe(int pe) override;
    [[nodiscard]] bool end_probe(int pe) override;
    void close(LaneId lane_id) override;
    bool progress(WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return rails_.descriptor(); }
    bool prepare_to_wait(WakeEvents what) override;

private:
    class RailListener;

    Status open();
    // Translates the result of a call to a rail for the caller.
    Code translate_code(std::size_t index, LaneId lane_id, Code code);
    void lose_rail(const RailConnections::Loss& loss);
    void lose_lane(LaneId lane_id, Code code, const std::string& why);

    StripedTransfers striped_;  // first member: outlives the wires, which use the stripes in flight until they end
    Rails rails_;
    RailConnections connections_;
    RailMemory memory_;
    RailLanes lanes_;
};

}  // namespace npushmem::network
