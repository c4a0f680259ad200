// SPDX-License-Identifier: BSD-3-Clause
// The transport as a C++ class. The runtime, the fakes, the decorators and plugin authors use this class; transport.h
// is its form at a shared object's boundary.
//
// To write a transport: derive from Transport, give the class a static
//     Result<std::unique_ptr<Transport>> open(const Host&, const npushmem_transport_params&)
// and put one NPUSHMEM_EXPORT_TRANSPORT(...) (transport_export.hpp) at the end of one source file. The order of calls,
// the thread rules, the ordering rules and what must be refused are those of transport.h.
//
// A function that throws fails with Code::system, or with Code::memory for std::bad_alloc. The exception's what() is
// the message of its Status; of a function that returns a Code, poll_event reports it as an event.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
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
    // Typical cost of the path, as in npushmem_reach; 0: unknown.
    std::uint64_t latency_ns = 0;
    std::uint64_t bytes_per_second = 0;

    [[nodiscard]] bool reachable() const { return capabilities != 0; }
    [[nodiscard]] bool has(std::uint64_t capability) const { return (capabilities & capability) == capability; }
};

// Memory made accessible to peers: the number for deregister_memory, and the bytes to send to them.
struct RegisteredMemory {
    std::uint64_t region = 0;
    Bytes handle;
};

// The number of bytes at the target from the beginning of the first block to the end of the last one; 0 for no data.
// The largest number, which no region contains, if the operation is too large or the number overflows.
inline std::uint64_t extent_of(const npushmem_put_strided& op) {
    constexpr std::uint64_t too_large = ~std::uint64_t{0};
    const std::uint64_t bytes = op.block.bytes;
    if (bytes == 0 || op.count == 0) return 0;
    if (bytes > NPUSHMEM_PUT_STRIDED_MAX || op.count > NPUSHMEM_PUT_STRIDED_MAX / bytes) return too_large;
    const std::uint64_t steps = op.count - 1;
    if (steps > 0 && op.remote_stride > (too_large - bytes) / steps) return too_large;
    return steps * op.remote_stride + bytes;
}

// Whether two PEs are on one host, so that they can reach each other through it: shared memory, Unix sockets, process
// numbers. Ignores the users, whose permissions may still forbid an access.
inline bool is_same_host(const npushmem_host_id& a, const npushmem_host_id& b) {
    return a.machine == b.machine && a.space == b.space && a.emulated == b.emulated;
}

namespace detail {

struct TransportTrampolines;

// The message of an exception that a data-path function threw, until poll_event delivers it. Records the first one of
// several. Allocates nothing, so that it can record the message of a failed allocation. Any thread.
class ThrownMessage {
public:
    void record(Code code, int pe, std::string_view function, std::string_view what) noexcept {
        const std::lock_guard guard(lock_);
        if (pending_.load(std::memory_order_relaxed)) return;  // changed under the lock only
        event_ = {};
        event_.code = static_cast<std::int32_t>(code);
        event_.pe = pe;
        std::size_t length = 0;
        for (const std::string_view part : {function, std::string_view(" of the plugin threw: "), what})
            length += part.copy(event_.message + length, sizeof event_.message - 1 - length);
        pending_.store(true, std::memory_order_relaxed);
    }
    // Delivers the event once; returns false if there is none. Leaves struct_size as it is. Relaxed: a caller that got
    // the failure has the event in its own thread; others poll again.
    bool poll(npushmem_event& out) noexcept {
        if (!pending_.load(std::memory_order_relaxed)) return false;
        const std::lock_guard guard(lock_);
        if (!pending_.load(std::memory_order_relaxed)) return false;
        const std::uint32_t size = out.struct_size;
        out = event_;
        out.struct_size = size;
        pending_.store(false, std::memory_order_relaxed);
        return true;
    }

private:
    std::mutex lock_;
    std::atomic<bool> pending_{false};
    npushmem_event event_{};  // under lock_
};

}  // namespace detail

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
    // Makes the connection that reach promised; called at most once per peer, before the first operation to it. The
    // peer may be this PE itself, if `reach` returned capabilities for it.
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
    virtual Code put_strided(std::uint64_t, const npushmem_put_strided&, std::uint64_t* /*token*/) {
        return Code::unsupported;
    }
    virtual Code fence(std::uint64_t queue) = 0;
    virtual Code quiet(std::uint64_t queue) = 0;
    // Default for transports that complete at once.
    virtual Code test(std::uint64_t queue, std::uint64_t /*token*/) { return quiet(queue); }

    virtual Code progress() { return Code::again; }
    virtual Code poll_event(npushmem_event& /*out*/) { return Code::again; }

    // The peer has died or left: ends the operations to it that are outstanding; may close its connection and free what
    // is held for it alone. Needed if such operations would otherwise stay outstanding. May be called repeatedly.
    virtual Code forget(int /*pe*/) { return Code::ok; }

    // From now on calls `arrived` with `context` after operations of peers have changed registered memory, without
    // calls of the host. A transport needs a thread for that. The host then calls `progress` rarely while it waits.
    virtual Code report_arrivals(void (* /*arrived*/)(void* context), void* /*context*/) { return Code::unsupported; }

private:
    friend struct detail::TransportTrampolines;
    detail::ThrownMessage thrown_;
};

}  // namespace npushmem
