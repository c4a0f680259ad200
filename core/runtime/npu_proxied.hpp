// The emulated NPU's way to PEs that are not mapped by way of a proxy: cores hand requests to a thread, which is made
// at the first one. What all cores ask goes through the same queues in the order in which it was asked.
#pragma once

#include <memory>
#include <mutex>

#include "core/proxy/proxy.hpp"
#include "core/runtime/npu_remote.hpp"

namespace npushmem {

class NpuProxied final : public NpuRemote {
public:
    // Requests of one core that may be unfinished; then it waits, and nobody else does.
    static constexpr std::uint64_t max_unfinished = 64;

    // All but `places` outlive this.
    NpuProxied(SliceAddressing places, RemotePeers& peers, const WaitBudget& budget, WaitOs& os);
    ~NpuProxied() override;

    // A source of up to Request::max_inline_bytes bytes is copied: then nothing is waited for.
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
    // How the request is called by who waits for it.
    struct RequestLabel {
        const char* what;
        int pe = -1;
    };

    Result<proxy::Proxy*> proxy();
    static Core& core_of(npu::RemoteWait& wait);
    // Hands the request over and does not wait for its end.
    Status post(Request& request, const RequestLabel& label, npu::RemoteWait& wait);
    // Hands the request over and waits for its end; `*value` becomes what came with the answer.
    Status call(Request& request, const RequestLabel& label, npu::RemoteWait& wait, std::uint64_t* value = nullptr);
    Status send_data(Request& request, const RequestLabel& label, npu::RemoteWait& wait);
    Status enqueue(Request& request, Core& core, npu::RemoteWait& wait);

    RemotePeers& peers_;
    const WaitBudget budget_;
    WaitOs& os_;
    std::mutex lock_;
    std::unique_ptr<proxy::Proxy> proxy_;  // under lock_ until it is made
    std::atomic<proxy::Proxy*> made_{nullptr};
};

}  // namespace npushmem
