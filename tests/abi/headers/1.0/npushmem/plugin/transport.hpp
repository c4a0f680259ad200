// SPDX-License-Identifier: BSD-3-Clause
// The transport as a C++ class. The runtime, the fakes, the decorators and plugin authors use this class; transport.h
// is its form at a shared object's boundary.
//
// To write a transport: derive from Transport, give the class a static
//     Result<std::unique_ptr<Transport>> open(const Host&, const npushmem_transport_params&)
// and put one NPUSHMEM_EXPORT_TRANSPORT(...) (transport_export.hpp) at the end of one source file. The order of calls,
// the thread rules and the ordering rules are those of transport.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

using Bytes = std::vector<std::byte>;

// The capabilities of one peer over one transport; `capabilities` 0 means unreachable.
struct Reach {
    std::uint64_t capabilities = 0;
    std::uint32_t atomic_32 = 0;
    std::uint32_t atomic_64 = 0;
    std::string why;

    [[nodiscard]] bool reachable() const { return capabilities != 0; }
    [[nodiscard]] bool has(std::uint64_t capability) const { return (capabilities & capability) == capability; }
};

// Memory made accessible to peers: the number for deregister_memory, and the bytes to send to them.
struct RegisteredMemory {
    std::uint64_t region = 0;
    Bytes handle;
};

class Transport {
public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    // Returns the NICs that this transport can use, in a stable order. Empty without NPUSHMEM_CAP_DEVICES.
    virtual Result<std::vector<npushmem_device>> devices() { return std::vector<npushmem_device>{}; }
    // Receives the assigned NICs, as indices into devices().
    virtual Status use_devices(std::span<const std::uint32_t> /*index*/) { return {}; }
    // Returns the address by which a peer reaches this PE; at most NPUSHMEM_ADDRESS_MAX bytes.
    virtual Result<Bytes> address() { return Bytes{}; }

    // Returns whether and how this PE can reach that one, with the reason. Makes no connection. The peer may be this PE
    // itself.
    virtual Reach reach(const npushmem_peer& peer) = 0;
    // Makes the connection that reach promised; called at most once per peer, before the first operation to it.
    virtual Status connect(const npushmem_peer& /*peer*/) { return {}; }

    // handle: at most NPUSHMEM_HANDLE_MAX bytes.
    virtual Result<RegisteredMemory> register_memory(const npushmem_memory& memory) = 0;
    virtual Code deregister_memory(std::uint64_t region) = 0;
    // Converts the peer's handle to a number for operations to this peer.
    virtual Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) = 0;
    virtual Code release_memory(std::uint64_t remote) = 0;
    // Returns the address of the imported region in this process. Needs NPUSHMEM_CAP_MAP.
    virtual Result<void*> map(std::uint64_t /*remote*/) {
        return Status{Code::unsupported, "this transport cannot map a peer's memory"};
    }

    virtual Result<std::uint64_t> create_queue() = 0;
    virtual Code destroy_queue(std::uint64_t queue) = 0;

    // Data path. Code::again: nothing was posted. `token` may be null.
    virtual Code put(std::uint64_t, const npushmem_rma&, std::uint64_t* /*token*/) { return Code::unsupported; }
    virtual Code get(std::uint64_t, const npushmem_rma&, std::uint64_t* /*token*/) { return Code::unsupported; }
    virtual Code atomic(std::uint64_t, const npushmem_atomic&, std::uint64_t* /*token*/) { return Code::unsupported; }
    virtual Code put_signal(std::uint64_t, const npushmem_put_signal&, std::uint64_t* /*token*/) {
        return Code::unsupported;
    }
    virtual Code fence(std::uint64_t queue) = 0;
    virtual Code quiet(std::uint64_t queue) = 0;
    // Default for transports that complete at once.
    virtual Code test(std::uint64_t queue, std::uint64_t /*token*/) { return quiet(queue); }

    virtual Code progress() { return Code::again; }
    virtual Code poll_event(npushmem_event& /*out*/) { return Code::again; }
};

}  // namespace npushmem
