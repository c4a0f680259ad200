// Progress: completions, messages, answers, and the liveness of peers.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/liveness.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::network {

// A peer without a hello cannot be answered yet: its request may arrive earlier over another lane.
Code NetworkTransport::send(LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const Peer& peer = peers_[static_cast<std::size_t>(lane_id.pe)];
    if (peer.failed != Code::ok) return peer.failed;
    const Lane& over = lane(lane_id);
    if (over.lost != Code::ok) return over.lost;
    if (!peer.added || !over.backlog.empty()) return Code::again;
    const Code sent = wire_->send(lane_id, head, rest);
    if (sent != Code::ok && sent != Code::again) lost(lane_id, sent, wire_->last_error());
    return sent;
}

void NetworkTransport::send_or_queue(LaneId lane_id, std::span<const std::byte> message) {
    if (send(lane_id, message) != Code::again) return;
    auto& backlog = lane(lane_id).backlog;
    if (backlog.empty()) lanes_with_backlog_.push_back(lane_id);
    backlog.emplace_back(message.begin(), message.end());
}

void NetworkTransport::send_backlogs() {
    std::erase_if(lanes_with_backlog_, [this](LaneId lane_id) { return send_backlog(lane_id); });
}

bool NetworkTransport::send_backlog(LaneId lane_id) {
    auto& backlog = lane(lane_id).backlog;
    if (backlog.empty()) return true;  // dropped meanwhile
    if (!peers_[static_cast<std::size_t>(lane_id.pe)].added) return false;
    while (!backlog.empty()) {
        const Code sent = wire_->send(lane_id, backlog.front(), {});
        if (sent == Code::again) return false;
        if (sent != Code::ok) {
            lost(lane_id, sent, wire_->last_error());
            return true;
        }
        backlog.pop_front();
    }
    return true;
}

bool NetworkTransport::drive() {
    const bool had_backlog = !lanes_with_backlog_.empty();
    const bool happened = drive_once();
    if (!had_backlog && !lanes_with_backlog_.empty()) arm_for_room();
    return happened;
}

bool NetworkTransport::drive_once() {
    const bool happened = wire_->progress(*this);
    if (!lanes_with_backlog_.empty()) send_backlogs();
    return happened;
}

// Completions free room, but the thread may be waiting for arrivals only. Later completions wake it; this handles
// earlier ones, up to a limit.
void NetworkTransport::arm_for_room() {
    constexpr int max_rounds = 1024;
    if (!thread_ || wire_->prepare_to_wait(WakeEvents::arrivals_and_completions)) return;
    for (int i = 0; i < max_rounds && drive_once(); ++i) {
    }
}

Code NetworkTransport::progress() {
    // Also counted while another thread drives, so that the progress thread leaves the work to waiting callers.
    driven_.fetch_add(1, std::memory_order_relaxed);
    const Lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return Code::again;
    return drive() ? Code::ok : Code::again;
}

int NetworkTransport::drive_for_thread() {
    // More events often follow at once: an answer, the next part of a stream. Polling is faster than being woken. Other
    // threads get the lock and the processor between two polls.
    constexpr std::chrono::microseconds max_idle{50};
    constexpr std::chrono::milliseconds max_duration{1};
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::uint64_t driven = driven_.load(std::memory_order_relaxed);
    auto last = begin;
    Lock guard(lock_);
    auto now = begin;
    for (; now - last < max_idle && now - begin < max_duration; now = Clock::now()) {
        if (driven_.load(std::memory_order_relaxed) - driven >= ProgressThread::busy_calls)
            return ProgressThread::wait_briefly;
        if (drive()) {
            last = now;
            continue;
        }
        guard.unlock();
        std::this_thread::yield();
        guard.lock();
    }
    // With a backlog the thread waits for room, which no descriptor reports.
    if (!lanes_with_backlog_.empty()) return ProgressThread::wait_briefly;
    if (wire_->prepare_to_wait(wake_events())) return wire_->descriptor();
    // A new arrival would otherwise wait for the pause that lets other threads take the lock.
    return drive() && now - begin < max_duration ? ProgressThread::continue_now : ProgressThread::wait_briefly;
}

// The program polls completions when it waits, but a signal follows its data without a call of the program.
WakeEvents NetworkTransport::wake_events() const {
    for (const auto& [number, queue] : queues_)
        for (const Flow* flow : queue->active)
            if (flow->signals > 0) return WakeEvents::arrivals_and_completions;
    return WakeEvents::arrivals;
}

// The thread may be waiting for arrivals only. If arrivals never end, as with a foreign process that floods the PE,
// they wake the thread, which then also waits for completions.
void NetworkTransport::arm_for_completions() {
    constexpr int max_rounds = 1024;
    if (!thread_) return;
    for (int i = 0; i < max_rounds; ++i)
        if (wire_->prepare_to_wait(WakeEvents::arrivals_and_completions) || !drive()) return;
}

Code NetworkTransport::poll_event(npushmem_event& out) {
    // Relaxed: the lock publishes the events, and a caller that got a failure has held the lock after the event was
    // queued.
    if (!has_events_.load(std::memory_order_relaxed)) return Code::again;
    const Lock guard(lock_);
    if (events_.empty()) return Code::again;
    out = events_.front();
    events_.pop_front();
    has_events_.store(!events_.empty(), std::memory_order_relaxed);
    return Code::ok;
}

void NetworkTransport::report_event(Code code, int pe, const std::string& text) {
    constexpr std::size_t max_events = 64;  // bounds the memory of a program that never polls events
    if (events_.size() == max_events) return;
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(code);
    event.pe = pe;
    event.message[text.copy(event.message, sizeof event.message - 1)] = '\0';
    events_.push_back(event);
    has_events_.store(true, std::memory_order_relaxed);
}

// Finishes the operation: updates its flow and queue, and returns it to the pool.
void NetworkTransport::finish(Operation& operation, Code code) {
    Flow* const flow = operation.flow;
    if (flow == nullptr) return operations_.release(operation);
    if (operation.deferred_signal) --flow->signals;
    switch (operation.kind) {
        case Operation::Kind::write: --flow->writes; break;
        case Operation::Kind::fetch: --flow->fetches; break;
        case Operation::Kind::flush: --flow->flushes; break;
        case Operation::Kind::read: break;
    }
    --flow->queue->outstanding;
    if (code != Code::ok) flow->queue->failures.emplace_back(operation.has_token ? operation.ticket : 0, code);
    operations_.release(operation);
}

void NetworkTransport::completed(WireContext& context, Code code, const std::string& why) {
    auto& operation = static_cast<Operation&>(context);
    operation.held_by_wire = false;
    Flow* const flow = operation.flow;
    if (flow != nullptr) {
        ++peers_[static_cast<std::size_t>(flow->lane_id.pe)].activity_count;
        if (code != Code::ok && !ends_a_peer(code) && !flow->queue->pending_event)
            flow->queue->pending_event = {
                flow->lane_id.pe, fmt::format("an operation to {} failed: {}", name_of_peer(flow->lane_id.pe), why)};
    }
    if (flow == nullptr || code != Code::ok || !operation.deferred_signal) {
        const LaneId lane_id = flow != nullptr ? flow->lane_id : LaneId{};
        finish(operation, code);
        if (lane_id.pe >= 0 && ends_a_peer(code)) lost(lane_id, code, why);
        return;
    }
    // With Delivery::on_flush the same operation waits for the flush, before its signal is sent.
    if (wire_->traits().delivery == Delivery::on_flush && !std::exchange(operation.flushing, true)) {
        operation.held_by_wire = true;
        const Code posted = wire_->flush(flow->lane_id, operation);
        if (posted == Code::ok) return;
        operation.held_by_wire = false;
        return lost(flow->lane_id, posted, wire_->last_error());
    }
    const AtomicRequest then = *operation.deferred_signal;
    flow->unhandled = true;  // set before sending: if that loses the lane, quiet reports it
    finish(operation, Code::ok);
    send_or_queue(flow->lane_id, bytes_of(then));
}

void NetworkTransport::arrived(std::span<const std::byte> message) {
    const auto head = parse_header(message);
    Peer* const peer = head ? peer_at(head->origin) : nullptr;
    if (peer == nullptr)
        return report_event(Code::protocol, -1,
                            fmt::format("{} bytes arrived over {} that are not a message of this version",
                                        message.size(), wire_->traits().name));
    ++peer->activity_count;
    if (head->kind == MessageKind::hello) return handle_hello(*head, message.subspan(sizeof *head));
    if (head->kind == MessageKind::answer) return handle_answer(message);
    if (head->kind == MessageKind::pong) return;
    if (head->kind == MessageKind::ping)
        return send_or_queue({head->origin}, bytes_of(this->message<MessageHeader>(MessageKind::pong)));
    if (!TargetHandler::is_complete(*head, message))
        return report_event(Code::protocol, head->origin,
                            fmt::format("{} sent a request over {} with {} bytes, which are too few",
                                        name_of_peer(head->origin), wire_->traits().name, message.size()));
    const auto answer = handler_.handle(*head, message);
    if (answer) send_or_queue({head->origin}, bytes_of(*answer));
}

void NetworkTransport::handle_hello(const MessageHeader& head, std::span<const std::byte> address) {
    Peer& peer = peers_[static_cast<std::size_t>(head.origin)];
    if (peer.added) return;
    if (Status added = wire_->add_peer(head.origin, address); !added.ok())
        return report_event(added.code(), head.origin,
                            fmt::format("cannot answer {}: {}", name_of_peer(head.origin), added.message()));
    peer.added = true;
}

void NetworkTransport::handle_answer(std::span<const std::byte> message) {
    const auto answer = message_as<Answer>(message);
    Operation* const operation = answer ? operations_.find(answer->ticket) : nullptr;
    if (operation == nullptr || operation->held_by_wire) return;  // its queue was destroyed
    const auto code = static_cast<Code>(answer->code);
    if (code == Code::ok && operation->result != nullptr)
        std::memcpy(operation->result, &answer->value, operation->width);
    finish(*operation, code);
}

void NetworkTransport::forget_flow(Flow& flow, Code code) {
    if (flow.undelivered || flow.unhandled) flow.queue->failures.emplace_back(0, code);
    flow.undelivered = flow.unhandled = flow.fenced = false;
}

void NetworkTransport::lost(LaneId lane_id, Code code, const std::string& why) {
    const std::string reason = why.empty() ? std::string(npushmem::name_of(code)) : why;
    // Any code of lane 0 means that the peer is lost and that waits for it must end.
    if (lane_id.lane == 0 || ends_a_peer(code))
        lose_peer(lane_id.pe, ends_a_peer(code) ? code : Code::unreachable, reason);
    else
        lose_lane(lane_id, code, reason);
}

int NetworkTransport::fail_operations(const std::function<bool(LaneId)>& lost, Code code) {
    int failed = 0;
    operations_.for_each([&](Operation& operation) {
        if (operation.flow == nullptr || !lost(operation.flow->lane_id)) return;
        ++failed;
        const bool held = operation.held_by_wire;
        Flow& flow = *operation.flow;
        if (!held) return finish(operation, code);
        // The wire may still report it: uncount it now, release it then.
        if (operation.kind == Operation::Kind::write) --flow.writes;
        if (operation.kind == Operation::Kind::flush) --flow.flushes;
        if (operation.deferred_signal) --flow.signals;
        --flow.queue->outstanding;
        flow.queue->failures.emplace_back(operation.has_token ? operation.ticket : 0, code);
        operation.flow = nullptr;
        operation.deferred_signal.reset();
    });
    return failed;
}

void NetworkTransport::lose_peer(int pe, Code code, const std::string& why) {
    Peer& peer = peers_[static_cast<std::size_t>(pe)];
    if (peer.failed != Code::ok) return;
    peer.failed = code;
    for (Lane& lane : peer.lanes) lane.backlog.clear();
    handler_.forget(pe);
    wire_->forget(pe);
    const int failed = fail_operations([pe](LaneId lane_id) { return lane_id.pe == pe; }, code);
    for (auto& [number, queue] : queues_)
        if (const auto flow = queue->flows.find(pe); flow != queue->flows.end()) forget_flow(*flow->second, code);
    report_event(code, pe,
                 fmt::format("{} is lost over {}: {}; {} operation{} under way", name_of_peer(pe), wire_->traits().name,
                             why, failed, failed == 1 ? " was" : "s were"));
}

// Queues on this lane can no longer reach the peer, which their next call reports. Other queues still can.
void NetworkTransport::lose_lane(LaneId lane_id, Code code, const std::string& why) {
    lane(lane_id).backlog.clear();
    lane(lane_id).must_close = true;
    lane(lane_id).lost = code;
    std::vector<OutgoingQueue*> users;
    for (auto& [number, queue] : queues_) {
        const auto found = queue->flows.find(lane_id.pe);
        if (found == queue->flows.end() || found->second->lane_id != lane_id || found->second->lost != Code::ok)
            continue;
        found->second->lost = code;
        forget_flow(*found->second, code);
        users.push_back(queue.get());
    }
    const int failed = fail_operations([lane_id](LaneId other) { return other == lane_id; }, code);
    for (OutgoingQueue* queue : users)
        queue->pending_event = {
            lane_id.pe,
            fmt::format("a context's own lane to {} is lost over {}: {}; {} operation{} under way",
                        name_of_peer(lane_id.pe), wire_->traits().name, why, failed, failed == 1 ? " was" : "s were")};
}

// A live peer answers a ping even while its program computes. A peer that has been silent for too long is lost.
void NetworkTransport::check_liveness(int pe, Peer& peer) {
    if (std::exchange(peer.last_activity_count, peer.activity_count) != peer.activity_count) {
        peer.silent_ticks = 0;
        return;
    }
    ++peer.silent_ticks;
    const auto silent = peer.silent_ticks * settings_.tick;
    if (settings_.peer_timeout != std::chrono::milliseconds::zero() && silent > settings_.peer_timeout)
        return lost({pe}, Code::timeout,
                    fmt::format("it has been silent for {:.1f} s{}", std::chrono::duration<double>(silent).count(),
                                peer.activity_count == 0
                                    ? " and has never sent anything (does a firewall block it, is the host up?)"
                                    : " (is the cable in, is the host up?)"));
    constexpr std::uint32_t ticks_per_ping = 2;
    if (peer.silent_ticks % ticks_per_ping == 0) (void)send({pe}, bytes_of(message<MessageHeader>(MessageKind::ping)));
}

void NetworkTransport::tick() {
    const Lock guard(lock_);
    for (std::size_t pe = 0; pe < peers_.size(); ++pe)
        if (peers_[pe].added && peers_[pe].failed == Code::ok) check_liveness(static_cast<int>(pe), peers_[pe]);
}

}  // namespace npushmem::network
