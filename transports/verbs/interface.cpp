// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/interface.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace npushmem::verbs {
namespace {

constexpr std::size_t receive_count = 256;
constexpr std::size_t send_count = 64;
constexpr std::size_t word_count = 256;  // results of atomics in flight
constexpr std::size_t bounce_count = 64;
constexpr std::size_t bounce_bytes = 16384;  // longer transfers of unregistered memory register it
// Entries of the completion queue that are not for requests of connections.
constexpr int reserved_completions = static_cast<int>(receive_count) + UdHandshake::max_completions;

}  // namespace

Result<PortResources> PortResources::create(std::unique_ptr<OpenedPort> port, std::shared_ptr<MemoryWatch> watch,
                                            const std::shared_ptr<RegistrationCaches>& caches) {
    PortResources out;
    out.port = std::move(port);
    ProtectionDomain& domain = out.port->domain();
    out.cache = std::make_shared<RegistrationCache>(domain, std::move(watch), out.port->settings().cache_bytes);
    caches->add(out.cache);
    domain.set_reclaim([caches] { return caches->drop_unused(); });
    struct Wanted {
        std::unique_ptr<BufferPool>& into;
        std::size_t count;
        std::size_t bytes;
    };
    std::unique_ptr<BufferPool> receive_buffers;
    for (const Wanted& wanted :
         {Wanted{receive_buffers, receive_count, MessageSender::max_bytes},
          Wanted{out.sends, send_count, MessageSender::max_bytes}, Wanted{out.words, word_count, sizeof(std::uint64_t)},
          Wanted{out.bounce_buffers, bounce_count, bounce_bytes}}) {
        auto made = BufferPool::make(domain, wanted.count, wanted.bytes);
        if (!made.ok()) return made.status();
        wanted.into = std::move(made).value();
    }
    auto receives = SharedReceiveQueue::open(*out.port, std::move(receive_buffers), receive_count);
    if (!receives.ok()) return receives.status();
    out.receives = std::move(receives).value();
    auto handshake = UdHandshake::open(*out.port);
    if (!handshake.ok()) return handshake.status();
    out.handshake = std::move(handshake).value();
    const int entries = out.port->completions().entries();
    if (entries <= 2 * reserved_completions)
        return Status{Code::system,
                      fmt::format("the device's completion queues have at most {} entries, which is too few", entries)};
    return out;
}

Interface::Interface(PortResources resources, const ConnectionManager::Identity& self, const Clock& now,
                     std::string& last_error)
    : port(std::move(resources.port)),
      memory(port->domain(), port->settings().chunk_bytes),
      service(descriptor),
      poster(static_cast<std::uint32_t>(port->completions().entries() - reserved_completions), last_error),
      messages(std::move(resources.sends), poster, service),
      atomics(std::move(resources.words), word_count),
      transfers(*port, memory, std::move(resources.cache), std::move(resources.bounce_buffers), keys, poster, service,
                failures),
      receives(std::move(resources.receives)),
      manager(self, std::move(resources.handshake), now, connections, service, last_error),
      keys(memory, manager, messages, failures, last_error),
      connections(*port, receives->get(), poster, service),
      events(*port),
      completions(*port, {poster, messages, atomics, transfers, *receives, manager, keys, connections, events}) {}

Status Interface::open_descriptor() {
    auto made =
        network::CombinedDescriptor::of(std::array{port->completions().descriptor(), port->context()->async_fd});
    if (!made.ok()) return made.status();
    descriptor = std::move(made).value();
    return {};
}

bool Interface::progress(network::WireListener& listener) {
    bool active = failures.report(listener);
    active = completions.poll(listener) || active;
    if (!service.empty()) active = serve_connections(listener) || active;
    if (manager.is_connecting()) active = manager.retry(listener) || active;
    if (!active && events.is_due()) active = events.handle(listener, connections);
    return active;
}

bool Interface::serve_connections(network::WireListener& listener) {
    bool happened = false;
    for (Connection* connection : service.take()) {
        connection->needs_service = false;
        happened = messages.send_queued(*connection) || happened;
        happened = transfers.resume(listener, *connection, connections) || happened;
        const bool has_control = !connection->control_queue.empty() && connection->failure().ok();
        if (has_control || connection->unfinished != nullptr) service.add(*connection);
    }
    return happened;
}

bool Interface::prepare_to_wait(network::WakeEvents what) {
    CompletionQueue& queue = port->completions();
    // All messages are solicited. Waking for the completions of this PE's own operations would wake the thread for
    // every put without need.
    const bool solicited_only = what == network::WakeEvents::arrivals;
    // A thread may be waiting for arrivals only already, and the caller may find no work either.
    if (!solicited_only && !queue.request_event(false)) return false;
    const bool busy = manager.is_connecting() || !service.empty() || !failures.empty() || receives->has_unposted() ||
                      completions.has_polled() || !events.empty() || connections.has_destroyable();
    if (busy) return false;
    descriptor.rest();
    queue.drain_events();
    if (!queue.request_event(solicited_only)) return false;
    const int count = completions.poll_ahead();
    events.drain();
    return count == 0 && events.empty();
}

}  // namespace npushmem::verbs
