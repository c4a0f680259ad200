// What the emulated NPU's ways to PEs that are not mapped have in common: where symmetric memory is, and what the
// operations are called by transports.
#pragma once

#include "core/ops/remote_access.hpp"
#include "npushmem/npu/remote_operations.hpp"

namespace npushmem {

// This PE's slice, which offsets count from.
struct SliceAddressing {
    // RemoteOperations::no_offset: not symmetric.
    std::function<std::uint64_t(const void* address)> offset_of;
    // Bytes from such an offset to the end of its part.
    std::function<std::uint64_t(std::uint64_t offset)> bytes_to_end;
};

class NpuRemote : public npu::RemoteOperations {
public:
    [[nodiscard]] std::uint64_t offset_of(const void* address) const final { return addressing_.offset_of(address); }

protected:
    explicit NpuRemote(SliceAddressing places) : addressing_(std::move(places)) {}

    // Whether `bytes` there are symmetric memory.
    [[nodiscard]] Status check(const void* address, std::size_t bytes) const;
    [[nodiscard]] npushmem_atomic as_transport_atomic(const npu::RemoteAtomic& operation, int pe) const;

private:
    SliceAddressing addressing_;
};

// As an access waits on behalf of a core.
RemoteAccess::WaitFunction wait_function_for(npu::RemoteWait& wait);

inline bool fetches(npu::RemoteAtomic::Kind kind) { return kind >= npu::RemoteAtomic::Kind::fetch; }
inline bool updates(npu::RemoteAtomic::Kind kind) { return kind != npu::RemoteAtomic::Kind::fetch; }

}  // namespace npushmem
