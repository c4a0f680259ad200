// SPDX-License-Identifier: BSD-3-Clause
// An open port with everything that exists while it is open.
#pragma once

#include <memory>
#include <string>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/wire.hpp"
#include "transports/verbs/completion_handler.hpp"
#include "transports/verbs/connection_manager.hpp"
#include "transports/verbs/key_exchange.hpp"
#include "transports/verbs/local_memory.hpp"
#include "transports/verbs/messages.hpp"
#include "transports/verbs/registration_cache.hpp"
#include "transports/verbs/transfers.hpp"
#include "transports/verbs/ud_handshake.hpp"

namespace npushmem::verbs {

// The objects whose creation may fail, in the order of creation.
struct PortResources {
    std::unique_ptr<OpenedPort> port;
    std::shared_ptr<RegistrationCache> cache;
    std::unique_ptr<BufferPool> sends;
    std::unique_ptr<BufferPool> words;
    std::unique_ptr<BufferPool> bounce_buffers;
    std::unique_ptr<SharedReceiveQueue> receives;
    std::unique_ptr<UdHandshake> handshake;

    static Result<PortResources> create(std::unique_ptr<OpenedPort> port, std::shared_ptr<MemoryWatch> watch,
                                        const std::shared_ptr<RegistrationCaches>& caches);
};

// An open port with its connections, its memory and its operations in flight. VerbsWire carries out each call by one or
// two of these objects. They are direct members, so that VerbsWire loads no pointers to find them. One thread at a
// time calls them, as it calls the wire.
struct Interface {
    // `last_error` outlives this object.
    Interface(PortResources resources, const ConnectionManager::Identity& self, const Clock& now,
              std::string& last_error);
    Interface(const Interface&) = delete;
    Interface& operator=(const Interface&) = delete;

    Status open_descriptor();
    // As those of network::Wire.
    bool progress(network::WireListener& listener);
    bool prepare_to_wait(network::WakeEvents what);

    // Destroyed in reverse order: connections first, the port last. So no device object is destroyed before the queue
    // pairs that use it, and no memory is deregistered before.
    std::unique_ptr<OpenedPort> port;
    network::CombinedDescriptor descriptor;
    LocalMemory memory;
    DeferredFailures failures;
    ServiceQueue service;
    RequestPoster poster;
    MessageSender messages;
    AtomicResults atomics;
    Transfers transfers;
    std::unique_ptr<SharedReceiveQueue> receives;
    ConnectionManager manager;  // owns the queue pairs in use, and that of the handshake
    KeyExchange keys;
    ConnectionTable connections;  // owns the queue pairs of closed connections
    PortEvents events;
    CompletionHandler completions;

private:
    bool serve_connections(network::WireListener& listener);
};

}  // namespace npushmem::verbs
