#include "core/ops/remote_access.hpp"

#include <fmt/core.h>

namespace npushmem {

RemoteAccess::RemoteAccess(std::span<const NamedTransport> transports, const TransportMap& map, PeerDirectory directory,
                           const Waiter& waiter, Duration timeout)
    : transports_(transports),
      map_(map),
      directory_(std::move(directory)),
      waiter_(waiter),
      timeout_(timeout),
      queues_(transports.size()) {}

RemoteAccess::~RemoteAccess() {
    for (const auto& [pe, met] : peers_) (void)transport_of(met).release_memory(met.remote);
    for (std::size_t i = 0; i < queues_.size(); ++i)
        if (queues_[i].open) (void)transports_[i].transport->destroy_queue(queues_[i].number);
}

Status RemoteAccess::open_queue(int transport) {
    Queue& queue = queues_[static_cast<std::size_t>(transport)];
    if (queue.open) return {};
    const NamedTransport& named = transports_[static_cast<std::size_t>(transport)];
    auto made = named.transport->create_queue();
    if (!made.ok()) return made.status().within(fmt::format("transport {}: cannot create a queue", named.name));
    queue = {true, made.value()};
    return {};
}

Result<RemoteAccess::Peer> RemoteAccess::peer(int pe) {
    const std::lock_guard guard(lock_);
    const auto known = peers_.find(pe);
    return known != peers_.end() ? Result<Peer>(known->second) : meet(pe);
}

Result<RemoteAccess::Peer> RemoteAccess::meet(int pe) {
    const int number = map_.route(pe).transport;
    const NamedTransport& named = transports_[static_cast<std::size_t>(number)];
    if (Status opened = open_queue(number); !opened.ok()) return opened;
    if (Status connected = named.transport->connect(directory_.peer(number, pe)); !connected.ok())
        return connected.within(fmt::format("transport {}: cannot connect to PE {}", named.name, pe));
    auto remote = named.transport->import_memory(pe, directory_.handle(number, pe));
    if (!remote.ok())
        return remote.status().within(fmt::format("transport {}: cannot use the memory of PE {}", named.name, pe));
    return peers_.emplace(pe, Peer{number, remote.value()}).first->second;
}

Result<void*> RemoteAccess::map(int pe) {
    const auto met = peer(pe);
    if (!met.ok()) return met.status();
    const std::lock_guard guard(lock_);
    return transport_of(met.value()).map(met.value().remote);
}

// Under the lock. A PE that only receives has no queue, and yet its transport may need it in order to receive; and what
// a wait on one transport needs may be behind another.
void RemoteAccess::drive() {
    for (std::size_t i = 0; i < transports_.size(); ++i)
        if ((map_.transports_in_use() >> i & 1U) != 0) (void)transports_[i].transport->progress();
}

// Calls `step` until it no longer says again; drives progress between. The lock is taken for each step only, so that
// other threads get on while this one waits.
template <class Step>
Status RemoteAccess::repeat(int transport, int pe, const char* what, Step&& step) {
    const NamedTransport& named = transports_[static_cast<std::size_t>(transport)];
    Code code = Code::again;
    const WaitFor wait{what, pe >= 0 ? PeRange::one(pe) : PeRange{}, timeout_};
    WaitFailure failure;
    const Code waited = waiter_.until(
        [&] {
            const std::lock_guard guard(lock_);
            code = step();
            if (code == Code::again) drive();
            return code != Code::again;
        },
        wait, &failure);
    if (waited != Code::ok)
        return Status{waited, describe(wait, failure)}.within(fmt::format("transport {}", named.name));
    if (code == Code::ok) return {};
    const std::lock_guard guard(lock_);
    Status event = event_of(named);
    if (!event.ok()) return event;
    return {code, fmt::format("transport {}: {} {}failed: {}", named.name, what,
                              pe >= 0 ? fmt::format("to PE {} ", pe) : "", name_of(code))};
}

template <class Post>
Status RemoteAccess::post(const Peer& peer, int pe, const char* what, Completion completion, Post&& post_once) {
    std::uint64_t token = 0;
    std::uint64_t* wanted = completion == Completion::local ? &token : nullptr;
    Status posted = repeat(peer.transport, pe, what, [&] { return post_once(wanted); });
    if (!posted.ok() || token == 0) return posted;
    return repeat(peer.transport, pe, what, [&] { return transport_of(peer).test(queue_of(peer), token); });
}

Status RemoteAccess::put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion) {
    const auto met = peer(pe);
    if (!met.ok()) return met.status();
    // The table has one structure for both directions; a put does not write to `local`.
    const npushmem_rma op{pe, 0, met.value().remote, offset, const_cast<void*>(source), bytes};
    return post(met.value(), pe, "a put", completion,
                [&](std::uint64_t* token) { return transport_of(met.value()).put(queue_of(met.value()), op, token); });
}

Status RemoteAccess::get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion) {
    const auto met = peer(pe);
    if (!met.ok()) return met.status();
    const npushmem_rma op{pe, 0, met.value().remote, offset, dest, bytes};
    return post(met.value(), pe, "a get", completion,
                [&](std::uint64_t* token) { return transport_of(met.value()).get(queue_of(met.value()), op, token); });
}

Status RemoteAccess::atomic(npushmem_atomic op, Completion completion) {
    const auto met = peer(op.pe);
    if (!met.ok()) return met.status();
    const Reach& reach = map_.route(op.pe).reach;
    const std::uint32_t native = op.width == 4 ? reach.atomic_32 : reach.atomic_64;
    if (!reach.has(NPUSHMEM_CAP_ATOMIC) || (native >> op.operation & 1U) == 0)
        return {Code::unsupported, fmt::format("transport {} has no {}-bit atomic operation {} for PE {}",
                                               transports_[static_cast<std::size_t>(met.value().transport)].name,
                                               op.width * 8, op.operation, op.pe)};
    op.remote = met.value().remote;
    return post(met.value(), op.pe, "an atomic", completion, [&](std::uint64_t* token) {
        return transport_of(met.value()).atomic(queue_of(met.value()), op, token);
    });
}

Status RemoteAccess::put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                                std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation,
                                Completion completion) {
    const auto met = peer(pe);
    if (!met.ok()) return met.status();
    const std::uint64_t remote = met.value().remote;
    const npushmem_put_signal op{
        {pe, 0, remote, offset, const_cast<void*>(source), bytes}, remote, signal_offset, signal, operation, 0};
    if (!map_.route(pe).reach.has(NPUSHMEM_CAP_PUT_SIGNAL)) return put_then_signal(met.value(), op, completion);
    return post(met.value(), pe, "a put with signal", completion, [&](std::uint64_t* token) {
        return transport_of(met.value()).put_signal(queue_of(met.value()), op, token);
    });
}

// For transports without put_signal: the fence is what keeps the data before the signal.
Status RemoteAccess::put_then_signal(const Peer& peer, const npushmem_put_signal& op, Completion completion) {
    Transport& transport = transport_of(peer);
    const std::uint64_t queue = queue_of(peer);
    const int pe = op.data.pe;
    Status put = post(peer, pe, "a put with signal", completion,
                      [&](std::uint64_t* token) { return transport.put(queue, op.data, token); });
    if (!put.ok()) return put;
    Status fenced = repeat(peer.transport, pe, "a fence", [&] { return transport.fence(queue); });
    if (!fenced.ok()) return fenced;
    const auto operation =
        static_cast<std::uint8_t>(op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET);
    const npushmem_atomic update{pe, operation, 8, 0, op.signal_remote, op.signal_offset, op.signal, 0, nullptr};
    return post(peer, pe, "a signal", completion,
                [&](std::uint64_t* token) { return transport.atomic(queue, update, token); });
}

bool RemoteAccess::is_open(std::size_t transport) {
    const std::lock_guard guard(lock_);
    return queues_[transport].open;
}

Status RemoteAccess::on_every_queue(const char* what, Code (Transport::*call)(std::uint64_t)) {
    Status first;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
        if (!is_open(i)) continue;
        Status done =
            repeat(static_cast<int>(i), -1, what, [&] { return (transports_[i].transport->*call)(queues_[i].number); });
        if (done.ok()) {
            const std::lock_guard guard(lock_);
            done = event_of(transports_[i]);
        }
        if (first.ok()) first = done;
    }
    return first;
}

Status RemoteAccess::fence() { return on_every_queue("a fence", &Transport::fence); }

Status RemoteAccess::quiet() { return on_every_queue("quiet", &Transport::quiet); }

Status RemoteAccess::progress() {
    // A caller that finds the lock taken need not wait: its holder drives progress.
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return {};
    drive();
    Status first;
    for (std::size_t i = 0; i < transports_.size() && first.ok(); ++i)
        if ((map_.transports_in_use() >> i & 1U) != 0) first = event_of(transports_[i]);
    return first;
}

Status RemoteAccess::event_of(const NamedTransport& named) const {
    npushmem_event event{};
    if (named.transport->poll_event(event) != Code::ok) return {};
    event.message[sizeof event.message - 1] = '\0';
    if (listener_) listener_(event.pe, static_cast<Code>(event.code));
    return {static_cast<Code>(event.code), fmt::format("transport {}: {}", named.name, event.message)};
}

}  // namespace npushmem
