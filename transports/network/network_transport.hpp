// A transport over any Wire. It implements queues, tokens, fences, atomics, signals, error codes and deadlines for all
// network libraries. It asks the target's handler, by messages, for operations that the wire lacks.
//
// Queues to one peer use separate lanes: the first queue uses lane 0, which always exists, each further one the lowest
// free lane. When no lane is free, queues share. A lane stays connected for the next queue, because connecting is slow,
// unless it is lost or its queue left operations in flight.
//
// One lock guards everything, including the wire. A progress thread drives the transport while the program computes. It
// starts with the first peer that could send something.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/slot_table.hpp"
#include "transports/network/address_codec.hpp"
#include "transports/network/outgoing.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"
#include "transports/shared/progress_thread.hpp"

namespace npushmem::network {

struct NetworkSettings {
    bool thread = true;  // use a progress thread
    // A peer that owes an answer and has been silent for this long is reported as lost; 0: never.
    std::chrono::milliseconds peer_timeout{30'000};
    // The interval at which the thread checks for silent peers.
    std::chrono::milliseconds tick{500};
    std::uint32_t lanes = 16;  // maximum per peer; at least 1
};

class NetworkTransport : public Transport, private WireListener {
public:
    // `wire` must be open.
    NetworkTransport(const npushmem_transport_params& params, std::unique_ptr<Wire> wire, NetworkSettings settings);
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
    Code fence(std::uint64_t queue) override;
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;
    Code poll_event(npushmem_event& out) override;

protected:
    // Replaces the constructor's wire. Call it before anything else.
    void use_wire(std::unique_ptr<Wire> wire) { wire_ = std::move(wire); }

private:
    using Lock = std::unique_lock<std::mutex>;

    struct Remote {
        int pe = -1;
        std::uint64_t region = 0;  // the owner's number
        std::uint64_t base = 0;
        std::uint64_t bytes = 0;
        std::uint64_t key = 0;  // the wire's

        [[nodiscard]] RemoteAddress at(const LaneId& lane_id, std::uint64_t offset) const {
            return {lane_id, key, base, offset};
        }
        [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t count) const {
            return offset <= bytes && count <= bytes - offset;
        }
    };
    struct Lane {
        std::uint32_t users = 0;    // flows
        bool must_close = false;    // no other queue may use it
        Code lost = Code::ok;       // not ok: the lane is lost
        std::deque<Bytes> backlog;  // messages that wait for room
    };
    struct Peer {
        bool added = false;
        Code failed = Code::ok;
        std::string host;                       // for people
        std::vector<Lane> lanes;                // up to the highest used; empty for an unknown peer
        std::uint64_t activity_count = 0;       // signs of life
        std::uint64_t last_activity_count = 0;  // at the last tick
        std::uint32_t silent_ticks = 0;
    };
    // The parts of an operation that has been checked.
    struct Target {
        OutgoingQueue* queue = nullptr;
        const Remote* remote = nullptr;
        Flow* flow = nullptr;
    };
    enum class PostKind { transfer, request };

    // Returns `code` to a caller on this queue. For a failure, also reports its pending event.
    Code report_to_caller(OutgoingQueue& queue, Code code);
    Code resolve_target(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset, std::uint64_t bytes,
                        Target& out);
    // True when the operation may be posted without overtaking a fence. Otherwise starts the flush that it needs.
    bool may_post(Flow& flow, PostKind kind);
    // True when all operations of these kinds are delivered. Otherwise starts the flush that they need.
    bool poll_delivery(Flow& flow, bool writes, bool requests);
    // True when all operations are complete. Otherwise starts the flush that they need.
    bool poll_quiet(OutgoingQueue& queue);
    void start_message_flush(Flow& flow);
    void start_wire_flush(Flow& flow);
    template <class PostOnWire>
    Code transfer(Flow& flow, Operation& operation, PostOnWire&& post);
    Code request_put(const Target& target, const npushmem_rma& op);
    Code request_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token);
    Code rma(Operation::Kind kind, std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code wire_atomic(const Target& target, const npushmem_atomic& op, std::uint64_t* token);
    Code wire_put_signal(const Target& target, const Remote& signal, const npushmem_put_signal& op,
                         std::uint64_t* token);
    Code put_then_signal(const Target& target, const npushmem_put_signal& op, const AtomicRequest& signal,
                         std::uint64_t* token);

    template <class Message>
    [[nodiscard]] Message message(MessageKind kind) const;
    // Code::again: no room; nothing was sent.
    Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest = {});
    // Sends the message now, or behind the backlog when there is room.
    void send_or_queue(LaneId lane_id, std::span<const std::byte> message);
    void send_backlogs();
    // True when the backlog is empty.
    bool send_backlog(LaneId lane_id);
    bool drive();
    bool drive_once();
    void arm_for_room();
    int drive_for_thread();
    [[nodiscard]] WakeEvents wake_events() const;
    void arm_for_completions();
    void tick();
    void check_liveness(int pe, Peer& peer);
    Status start_thread();

    void completed(WireContext& context, Code code, const std::string& why) override;
    void arrived(std::span<const std::byte> message) override;
    void lost(LaneId lane_id, Code code, const std::string& why) override;
    void lose_peer(int pe, Code code, const std::string& why);
    void lose_lane(LaneId lane_id, Code code, const std::string& why);
    // Fails the operations in flight on these lanes once. Returns their number.
    int fail_operations(const std::function<bool(LaneId)>& lost, Code code);
    void handle_hello(const MessageHeader& head, std::span<const std::byte> address);
    void handle_answer(std::span<const std::byte> message);
    void finish(Operation& operation, Code code);
    void forget_flow(Flow& flow, Code code);
    void report_event(Code code, int pe, const std::string& text);
    [[nodiscard]] std::string name_of_peer(int pe) const;
    [[nodiscard]] bool ordered() const {
        const Delivery delivery = wire_->traits().delivery;
        return delivery == Delivery::in_order || delivery == Delivery::in_order_on_completion;
    }
    // True when a completed write is also delivered.
    [[nodiscard]] bool completion_means_delivery() const {
        const Delivery delivery = wire_->traits().delivery;
        return delivery == Delivery::on_completion || delivery == Delivery::in_order_on_completion;
    }
    Peer* peer_at(int pe);
    Lane& lane(LaneId lane_id);
    std::uint32_t acquire_lane(int pe);
    void release_lane(LaneId lane_id);
    void abandon(const OutgoingQueue& queue);
    [[nodiscard]] bool wire_holds(const OutgoingQueue& queue);

    int my_pe_;
    NetworkSettings settings_;
    std::mutex lock_;  // guards the members below
    std::vector<Peer> peers_;
    RegionTable regions_;
    TargetHandler handler_;
    SlotTable<Remote> remotes_;
    std::map<std::uint64_t, std::unique_ptr<OutgoingQueue>> queues_;
    std::uint64_t last_queue_ = 0;
    OperationPool operations_;
    std::vector<LaneId> lanes_with_backlog_;
    std::deque<npushmem_event> events_;
    std::atomic<bool> has_events_{false};  // read without the lock: a caller that sees an old value asks again
    std::unique_ptr<Wire> wire_;
    std::atomic<std::uint64_t> driven_{0};    // drives by other threads; relaxed: a statistic
    std::unique_ptr<ProgressThread> thread_;  // last member: stops first
};

// Reads the settings of a network transport: <PREFIX>PROGRESS_THREAD, <PREFIX>PEER_TIMEOUT, <PREFIX>LANES.
Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix);
// Reads <PREFIX>NATIVE_ATOMICS. True: always. Auto means false: these libraries cannot say that their atomics are
// atomic with those of the target's CPU.
Result<bool> read_native_atomics(const Host& host, const std::string& prefix);

}  // namespace npushmem::network
