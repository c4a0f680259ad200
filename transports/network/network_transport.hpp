// A transport over any Wire: queues, tokens, fences, atomics, signals, errors as values and deadlines, the same for
// every network library. What the wire does not do is asked of the target's handler by messages.
//
// Queues that talk to one peer do so over lanes of their own: the first over lane 0, which is there anyhow, each
// further one over the lowest that is free, as long as there are; more queues share. What a lane has connected stays so
// for the next queue, as connecting takes long, unless it is lost or its queue had to leave something under way.
//
// One lock guards everything, the wire included. A thread of its own drives it while the program computes, as soon as
// there is a peer that could send something.
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
#include "transports/network/progress_thread.hpp"
#include "transports/network/target_handler.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::network {

struct NetworkSettings {
    bool thread = true;  // of its own, for progress
    // A peer that owes something and has not been heard of for so long is lost; 0: never.
    std::chrono::milliseconds peer_timeout{30'000};
    // How often the thread looks whether peers are still heard of.
    std::chrono::milliseconds tick{500};
    std::uint32_t lanes = 16;  // at most to one peer; at least 1
};

class NetworkTransport : public Transport, private WireListener {
public:
    // `wire` is open.
    NetworkTransport(const npushmem_transport_params& params, std::unique_ptr<Wire> wire, NetworkSettings settings);
    ~NetworkTransport() override;

    Result<Bytes> address() override;
    // Also remembers who the peer is, and starts the thread.
    Reach reach(const npushmem_peer& peer) override;
    Status connect(const npushmem_peer& peer) override;
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override;
    Code deregister_memory(std::uint64_t region) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Code release_memory(std::uint64_t remote) override;

    Result<std::uint64_t> create_queue() override;
    // Waits for what the network still has of the caller's memory, for the peer timeout at most.
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
    // In place of the one it was made with, before anything else is called.
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
        bool must_close = false;    // not to be used by others
        Code lost = Code::ok;       // nothing gets through any more
        std::deque<Bytes> backlog;  // messages that found no room
    };
    struct Peer {
        bool added = false;
        Code failed = Code::ok;
        std::string host;                       // for people
        std::vector<Lane> lanes;                // as many as have been used; none of an unknown peer
        std::uint64_t activity_count = 0;       // how often
        std::uint64_t last_activity_count = 0;  // at the last tick
        std::uint32_t silent_ticks = 0;
    };
    // What an operation needs, once it has been checked.
    struct Target {
        OutgoingQueue* queue = nullptr;
        const Remote* remote = nullptr;
        Flow* flow = nullptr;
    };
    enum class PostKind { transfer, request };

    // `code` as a caller on this queue gets it: if it is a failure, what was kept for it is an event now.
    Code report_to_caller(OutgoingQueue& queue, Code code);
    Code resolve_target(std::uint64_t queue, std::uint64_t remote, int pe, std::uint64_t offset, std::uint64_t bytes,
                        Target& out);
    // May an operation of this sort overtake nothing that a fence holds back? Starts what has to happen first.
    bool may_post(Flow& flow, PostKind kind);
    // Is everything of these sorts delivered? Starts what has to happen for it.
    bool poll_delivery(Flow& flow, bool writes, bool requests);
    // Is everything complete? Likewise.
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
    // Code::again: no room, nothing was sent.
    Code send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest = {});
    // Sent now or as soon as there is room, behind what already waits for it.
    void send_or_queue(LaneId lane_id, std::span<const std::byte> message);
    void send_backlogs();
    // True: nothing waits there any more.
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
    // What is in flight on these lanes fails, once; how many operations were.
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
    // Is a write that is complete delivered as well?
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
    std::mutex lock_;  // of everything below
    std::vector<Peer> peers_;
    RegionTable regions_;
    TargetHandler handler_;
    SlotTable<Remote> remotes_;
    std::map<std::uint64_t, std::unique_ptr<OutgoingQueue>> queues_;
    std::uint64_t last_queue_ = 0;
    OperationPool operations_;
    std::vector<LaneId> lanes_with_backlog_;
    std::deque<npushmem_event> events_;
    std::atomic<bool> has_events_{false};  // looked at without the lock: who sees an old value asks again
    std::unique_ptr<Wire> wire_;
    std::atomic<std::uint64_t> driven_{0};    // by others than the thread; no order is needed, it is only looked at
    std::unique_ptr<ProgressThread> thread_;  // last: ends first
};

// The settings that every network transport has, under its own prefix: <PREFIX>PROGRESS_THREAD, <PREFIX>PEER_TIMEOUT,
// <PREFIX>LANES;
// and of those whose library has atomics of its own: <PREFIX>NATIVE_ATOMICS.

Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix);
// True: always. Auto means no: no such library says that its atomics are atomic with those of the target's CPU.
Result<bool> read_native_atomics(const Host& host, const std::string& prefix);

}  // namespace npushmem::network
