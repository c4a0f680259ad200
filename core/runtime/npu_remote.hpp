// The emulated NPU's way to PEs that are not mapped: queues of its own, on behalf of its cores.
#pragma once

#include "core/ops/remote_access.hpp"
#include "npushmem/npu/remote_operations.hpp"

namespace npushmem {

class Runtime;

// Any thread. One context for all cores: what one of them waits for with quiet includes what the others began before.
class NpuRemote final : public npu::RemoteOperations {
public:
    // `runtime` outlives this.
    explicit NpuRemote(Runtime& runtime);

    [[nodiscard]] std::uint64_t offset_of(const void* address) const override;
    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override;
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override;
    Status fence(npu::RemoteWait& wait) override;
    Status quiet(npu::RemoteWait& wait) override;

private:
    // Whether `bytes` there are symmetric memory.
    [[nodiscard]] Status check(const void* address, std::size_t bytes) const;

    const Runtime& runtime_;
    RemoteAccess access_;
};

}  // namespace npushmem
