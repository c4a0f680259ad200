// SPDX-License-Identifier: BSD-3-Clause
// Operations of the emulated NPU on PEs that are not mapped, in two modes: direct and by proxy.
#pragma once

#include <memory>
#include <mutex>

#include "core/remote/proxy.hpp"
#include "core/remote/remote_access.hpp"
#include "npushmem/npu/remote_operations.hpp"

namespace npushmem {

// Converts addresses in this PE's slice to offsets.
struct SliceAddressing {
    // Returns RemoteOperations::no_offset for memory that is not symmetric.
    std::function<std::uint64_t(const void* address)> offset_of;
    // Returns the number of bytes from such an offset to the end of its part of the slice.
    std::function<std::uint64_t(std::uint64_t offset)> bytes_to_end;
};

class NpuRemote : public npu::RemoteOperations {
public:
    [[nodiscard]] std::uint64_t offset_of(const void* address) const final { return addressing_.offset_of(address); }

protected:
    explicit NpuRemote(SliceAddressing places) : addressing_(std::move(places)) {}

    // Checks that `bytes` at `address` are symmetric memory.
    [[nodiscard]] Status check(const void* address, std::size_t bytes) const;
    [[nodiscard]] npushmem_atomic as_transport_atomic(const npu::RemoteAtomic& operation, int pe) const;

private:
    SliceAddressing addressing_;
};

// Returns the wait function of an access on behalf of a core.
RemoteAccess::WaitFunction wait_function_for(npu::RemoteWait& wait);

inline bool fetches(npu::RemoteAtomic::Kind kind) { return kind >= npu::RemoteAtomic::Kind::fetch; }
inline bool updates(npu::RemoteAtomic::Kind kind) { return kind != npu::RemoteAtomic::Kind::fetch; }

// Direct mode: each core has its own queues, and its thread calls the transport.
//
// A queue orders only its own operations. Therefore a core completes the other cores' puts to a PE before it signals
// that PE or does an atomic operation there. Quiet completes the puts of all cores, and so does the first operation
// after a fence.
class NpuDirect final : public NpuRemote {
public:
    // `peers` outlives this.
    NpuDirect(SliceAddressing places, RemotePeers& peers, int pes);
    ~NpuDirect() override;

    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override;
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override;
    Status fence(npu::RemoteWait& wait) override;
    Status quiet(npu::RemoteWait& wait) override;

private:
    using WaitFunction = RemoteAccess::WaitFunction;
    using Completion = RemoteAccess::Completion;
    class Queues;
    class Registry;
    class Core;

    Queues& queues_of(npu::RemoteWait& wait);
    // Orders all operations of all cores to the PE before this core's next one.
    Status order(Queues& mine, int pe, const WaitFunction& wait_function);
    // Waits while other cores complete this core's operations to the PE; it must not post meanwhile.
    static Status wait_until_may_post(const Queues& mine, int pe, npu::RemoteWait& wait);
    // Completes the operations of cores other than `mine` to these PEs.
    Status complete_others(const Queues& mine, int first_pe, int pes, const WaitFunction& wait_function);

    const int pes_;
    std::shared_ptr<Registry> registry_;  // a core that outlives this object sees that it has been destroyed
};

// Proxy mode: cores pass requests to a thread, which starts at the first request. The requests of all cores go through
// the same queues in the order in which they were made.
class NpuProxied final : public NpuRemote {
public:
    // The number of unfinished requests of one core. At this limit the core waits; other cores do not.
    static constexpr std::uint64_t max_unfinished = 64;

    // All arguments but `places` must outlive the object.
    NpuProxied(SliceAddressing places, RemotePeers& peers, const WaitBudget& budget, WaitOs& os);
    ~NpuProxied() override;

    // Copies a source of up to Request::max_inline_bytes bytes and does not wait.
    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override;
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override;
    Status fence(npu::RemoteWait& wait) override;
    Status quiet(npu::RemoteWait& wait) override;

private:
    using RequesterState = proxy::RequesterState;
    using Request = proxy::Request;
    struct Core;

    Result<proxy::Proxy*> proxy();
    static Core& core_of(npu::RemoteWait& wait);
    // Passes the request to the proxy and does not wait for its end.
    Status post(Request& request, npu::RemoteWait& wait);
    // Passes the request to the proxy and waits for its end. The wait fails when `pe` dies; -1: when any PE does.
    // `*value` receives the value of the reply.
    Status call(Request& request, int pe, npu::RemoteWait& wait, std::uint64_t* value = nullptr);
    Status send_data(Request& request, npu::RemoteWait& wait);
    Status enqueue(Request& request, Core& core, npu::RemoteWait& wait);

    RemotePeers& peers_;
    const WaitBudget budget_;
    WaitOs& os_;
    std::mutex lock_;
    std::unique_ptr<proxy::Proxy> proxy_;  // under lock_ until it is made
    std::atomic<proxy::Proxy*> made_{nullptr};
};

}  // namespace npushmem
