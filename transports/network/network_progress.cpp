// What happens without being called for: completions, messages, answers, the watch over peers.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/lost_peer.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::network {

// A peer that has not introduced itself yet cannot be answered: what it asked over another lane may come before.
Code NetworkTransport::send(Way way, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const Peer& peer = peers_[static_cast<std::size_t>(way.pe)];
    if (peer.failed != Code::ok) return peer.failed;
    const Lane& over = lane(way);
    if (over.lost != Code::ok) return over.lost;
    if (!peer.linked || !over.backlog.empty()) return Code::again;
    const Code sent = wire_->send(way, head, rest);
    if (sent != Code::ok && sent != Code::again) lost(way, sent, wire_->why());
    return sent;
}

void NetworkTransport::send_in_any_case(Way way, std::span<const std::byte> message) {
    if (send(way, message) != Code::again) return;
    auto& backlog = lane(way).backlog;
    if (backlog.empty()) with_backlog_.push_back(way);
    backlog.emplace_back(message.begin(), message.end());
}

void NetworkTransport::send_backlogs() {
    std::erase_if(with_backlog_, [this](Way way) { return send_backlog(way); });
}

bool NetworkTransport::send_backlog(Way way) {
    auto& backlog = lane(way).backlog;
    if (backlog.empty()) return true;  // dropped meanwhile
    if (!peers_[static_cast<std::size_t>(way.pe)].linked) return false;
    while (!backlog.empty()) {
        const Code sent = wire_->send(way, backlog.front(), {});
        if (sent == Code::again) return false;
        if (sent != Code::ok) {
            lost(way, sent, wire_->why());
            return true;
        }
        backlog.pop_front();
    }
    return true;
}

bool NetworkTransport::drive() {
    const bool had_backlog = !with_backlog_.empty();
    const bool happened = drive_once();
    if (!had_backlog && !with_backlog_.empty()) await_room();
    return happened;
}

bool NetworkTransport::drive_once() {
    const bool happened = wire_->progress(*this);
    if (!with_backlog_.empty()) send_backlogs();
    return happened;
}

// Room comes with completions, and the thread may be waiting for arrivals alone. What completes from here on wakes it;
// what had been there before is looked at here, but not for as long as there is always more.
void NetworkTransport::await_room() {
    constexpr int most = 1024;
    if (!thread_ || wire_->prepare_to_wait(Awaited::arrivals_and_completions)) return;
    for (int i = 0; i < most && drive_once(); ++i) {
    }
}

Code NetworkTransport::progress() {
    // Counted also when somebody else drives, perhaps the thread, which is to leave it to those who wait.
    driven_.fetch_add(1, std::memory_order_relaxed);
    const Lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return Code::again;
    return drive() ? Code::ok : Code::again;
}

int NetworkTransport::drive_for_thread() {
    // More often follows at once: an answer, the next of a stream. To be woken for it takes longer than this. Others
    // get the lock, and the processor, between two looks.
    constexpr std::chrono::microseconds most_idle{50};
    constexpr std::chrono::milliseconds most{1};
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::uint64_t driven = driven_.load(std::memory_order_relaxed);
    auto last = begin;
    Lock guard(lock_);
    auto now = begin;
    for (; now - last < most_idle && now - begin < most; now = Clock::now()) {
        if (driven_.load(std::memory_order_relaxed) - driven >= ProgressThread::often) return ProgressThread::nap;
        if (drive()) {
            last = now;
            continue;
        }
        guard.unlock();
        std::this_thread::yield();
        guard.lock();
    }
    // With a backlog, what is waited for is room, which no descriptor tells of.
    if (!with_backlog_.empty()) return ProgressThread::nap;
    if (wire_->prepare_to_wait(awaited())) return wire_->descriptor();
    // What has come just now would lie there for as long as a nap, which is for others to get the lock.
    return drive() && now - begin < most ? ProgressThread::more : ProgressThread::nap;
}

// What completes is looked at when the program asks for it; but a signal follows its data without being asked for.
Awaited NetworkTransport::awaited() const {
    for (const auto& [number, queue] : queues_)
        for (const Flow* flow : queue->active)
            if (flow->signals > 0) return Awaited::arrivals_and_completions;
    return Awaited::arrivals;
}

// The thread may be waiting for arrivals alone. Where there is always more, as when a foreign process sends without
// end, the arrivals wake the thread, and it then waits for completions as well.
void NetworkTransport::await_completions() {
    constexpr int most = 1024;
    if (!thread_) return;
    for (int i = 0; i < most; ++i)
        if (wire_->prepare_to_wait(Awaited::arrivals_and_completions) || !drive()) return;
}

Code NetworkTransport::poll_event(npushmem_event& out) {
    // Relaxed: the lock brings the events; and who has been told a failure has had the lock since the event was kept.
    if (!has_events_.load(std::memory_order_relaxed)) return Code::again;
    const Lock guard(lock_);
    if (events_.empty()) return Code::again;
    out = events_.front();
    events_.pop_front();
    has_events_.store(!events_.empty(), std::memory_order_relaxed);
    return Code::ok;
}

void NetworkTransport::tell(Code code, int pe, const std::string& text) {
    constexpr std::size_t most = 64;  // a program that never looks must not fill memory
    if (events_.size() == most) return;
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(code);
    event.pe = pe;
    event.message[text.copy(event.message, sizeof event.message - 1)] = '\0';
    events_.push_back(event);
    has_events_.store(true, std::memory_order_relaxed);
}

// The operation is over: its flow and queue are told, the pool has it back.
void NetworkTransport::finish(Operation& operation, Code code) {
    Flow* const flow = operation.flow;
    if (flow == nullptr) return operations_.give_back(operation);
    if (operation.then) --flow->signals;
    switch (operation.kind) {
        case Operation::Kind::write: --flow->writes; break;
        case Operation::Kind::fetch: --flow->fetches; break;
        case Operation::Kind::flush: --flow->flushes; break;
        case Operation::Kind::read: break;
    }
    --flow->queue->outstanding;
    if (code != Code::ok) flow->queue->failures.emplace_back(operation.told ? operation.ticket : 0, code);
    operations_.give_back(operation);
}

void NetworkTransport::completed(WireContext& context, Code code, const std::string& why) {
    auto& operation = static_cast<Operation&>(context);
    operation.held_by_wire = false;
    Flow* const flow = operation.flow;
    if (flow != nullptr) {
        ++peers_[static_cast<std::size_t>(flow->way.pe)].heard;
        if (code != Code::ok && !ends_a_peer(code) && !flow->queue->untold)
            flow->queue->untold = {flow->way.pe,
                                   fmt::format("an operation to {} failed: {}", name_of_peer(flow->way.pe), why)};
    }
    if (flow == nullptr || code != Code::ok || !operation.then) {
        const Way way = flow != nullptr ? flow->way : Way{};
        finish(operation, code);
        if (way.pe >= 0 && ends_a_peer(code)) lost(way, code, why);
        return;
    }
    // On a wire that needs a flush the same operation waits for it, with the signal still to be sent.
    if (wire_->traits().delivery == Delivery::on_flush && !std::exchange(operation.flushing, true)) {
        operation.held_by_wire = true;
        const Code posted = wire_->flush(flow->way, operation);
        if (posted == Code::ok) return;
        operation.held_by_wire = false;
        return lost(flow->way, posted, wire_->why());
    }
    const AtomicRequest then = *operation.then;
    flow->unhandled = true;  // before it is sent: should that lose the way, quiet tells
    finish(operation, Code::ok);
    send_in_any_case(flow->way, bytes_of(then));
}

void NetworkTransport::arrived(std::span<const std::byte> message) {
    const auto head = head_of(message);
    Peer* const peer = head ? peer_at(head->origin) : nullptr;
    if (peer == nullptr)
        return tell(Code::protocol, -1,
                    fmt::format("{} bytes came over {} that are no message of this version", message.size(),
                                wire_->traits().name));
    ++peer->heard;
    if (head->kind == MessageKind::hello) return greet(*head, message.subspan(sizeof *head));
    if (head->kind == MessageKind::answer) return answered(message);
    if (head->kind == MessageKind::pong) return;
    if (head->kind == MessageKind::ping)
        return send_in_any_case({head->origin}, bytes_of(this->message<MessageHead>(MessageKind::pong)));
    if (!TargetHandler::whole(*head, message))
        return tell(Code::protocol, head->origin,
                    fmt::format("{} asked for something over {} in {} bytes, which is too few to say what",
                                name_of_peer(head->origin), wire_->traits().name, message.size()));
    const auto answer = handler_.handle(*head, message);
    if (answer) send_in_any_case({head->origin}, bytes_of(*answer));
}

void NetworkTransport::greet(const MessageHead& head, std::span<const std::byte> address) {
    Peer& peer = peers_[static_cast<std::size_t>(head.origin)];
    if (peer.linked) return;
    if (Status linked = wire_->link(head.origin, address); !linked.ok())
        return tell(linked.code(), head.origin,
                    fmt::format("cannot answer {}: {}", name_of_peer(head.origin), linked.message()));
    peer.linked = true;
}

void NetworkTransport::answered(std::span<const std::byte> message) {
    const auto answer = message_as<Answer>(message);
    Operation* const operation = answer ? operations_.find(answer->ticket) : nullptr;
    if (operation == nullptr || operation->held_by_wire) return;  // its queue has gone meanwhile
    const auto code = static_cast<Code>(answer->code);
    if (code == Code::ok && operation->result != nullptr)
        std::memcpy(operation->result, &answer->value, operation->width);
    finish(*operation, code);
}

void NetworkTransport::forget_flow(Flow& flow, Code code) {
    if (flow.undelivered || flow.unhandled) flow.queue->failures.emplace_back(0, code);
    flow.undelivered = flow.unhandled = flow.fenced = false;
}

void NetworkTransport::lost(Way way, Code code, const std::string& why) {
    const std::string reason = why.empty() ? std::string(npushmem::name_of(code)) : why;
    // Whatever its first way ended with, the peer is lost, and waits for it are to end.
    if (way.lane == 0 || ends_a_peer(code))
        lose_peer(way.pe, ends_a_peer(code) ? code : Code::unreachable, reason);
    else
        lose_lane(way, code, reason);
}

int NetworkTransport::fail_operations(const std::function<bool(Way)>& lost, Code code) {
    int failed = 0;
    operations_.for_each([&](Operation& operation) {
        if (operation.flow == nullptr || !lost(operation.flow->way)) return;
        ++failed;
        const bool held = operation.held_by_wire;
        Flow& flow = *operation.flow;
        if (!held) return finish(operation, code);
        // The wire may still tell of it: counted off now, given back then.
        if (operation.kind == Operation::Kind::write) --flow.writes;
        if (operation.kind == Operation::Kind::flush) --flow.flushes;
        if (operation.then) --flow.signals;
        --flow.queue->outstanding;
        flow.queue->failures.emplace_back(operation.told ? operation.ticket : 0, code);
        operation.flow = nullptr;
        operation.then.reset();
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
    const int failed = fail_operations([pe](Way way) { return way.pe == pe; }, code);
    for (auto& [number, queue] : queues_)
        if (const auto flow = queue->flows.find(pe); flow != queue->flows.end()) forget_flow(*flow->second, code);
    tell(code, pe,
         fmt::format("{} is lost over {}: {}; {} operation{} under way", name_of_peer(pe), wire_->traits().name, why,
                     failed, failed == 1 ? " was" : "s were"));
}

// The queues that use this lane can no longer reach the peer, and are told when they ask; others, and the peer itself,
// can.
void NetworkTransport::lose_lane(Way way, Code code, const std::string& why) {
    lane(way).backlog.clear();
    lane(way).spoilt = true;
    lane(way).lost = code;
    std::vector<OutgoingQueue*> users;
    for (auto& [number, queue] : queues_) {
        const auto found = queue->flows.find(way.pe);
        if (found == queue->flows.end() || found->second->way != way || found->second->lost != Code::ok) continue;
        found->second->lost = code;
        forget_flow(*found->second, code);
        users.push_back(queue.get());
    }
    const int failed = fail_operations([way](Way other) { return other == way; }, code);
    for (OutgoingQueue* queue : users)
        queue->untold = {way.pe, fmt::format("a context's own way to {} is lost over {}: {}; {} operation{} under way",
                                             name_of_peer(way.pe), wire_->traits().name, why, failed,
                                             failed == 1 ? " was" : "s were")};
}

// A peer that is there answers a ping even while its program computes; one that says nothing for long is lost.
void NetworkTransport::watch(int pe, Peer& peer) {
    if (std::exchange(peer.heard_before, peer.heard) != peer.heard) {
        peer.silent_ticks = 0;
        return;
    }
    ++peer.silent_ticks;
    const auto silent = peer.silent_ticks * settings_.tick;
    if (settings_.patience != std::chrono::milliseconds::zero() && silent > settings_.patience)
        return lost({pe}, Code::timeout,
                    fmt::format("nothing was heard of it for {:.1f} s{}", std::chrono::duration<double>(silent).count(),
                                peer.heard == 0 ? ", nor ever before (does a firewall let it through, is the host up?)"
                                                : " (is the cable in, is the host up?)"));
    constexpr std::uint32_t ticks_per_ping = 2;
    if (peer.silent_ticks % ticks_per_ping == 0) (void)send({pe}, bytes_of(message<MessageHead>(MessageKind::ping)));
}

void NetworkTransport::tick() {
    const Lock guard(lock_);
    for (std::size_t pe = 0; pe < peers_.size(); ++pe)
        if (peers_[pe].linked && peers_[pe].failed == Code::ok) watch(static_cast<int>(pe), peers_[pe]);
}

}  // namespace npushmem::network
