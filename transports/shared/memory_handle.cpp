#include "transports/shared/memory_handle.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace npushmem::shared_memory {
namespace {

constexpr std::uint64_t handle_magic = 0x314d454d'4853504eU;  // "NPSHMEM1"
constexpr std::uint32_t handle_version = 1;

}  // namespace

Bytes encode(MemoryHandle handle) {
    handle.magic = handle_magic;
    handle.version = handle_version;
    handle.struct_size = sizeof handle;
    Bytes out(sizeof handle);
    std::memcpy(out.data(), &handle, sizeof handle);
    return out;
}

Result<MemoryHandle> decode(std::span<const std::byte> bytes) {
    MemoryHandle handle{};
    if (bytes.size() != sizeof handle)
        return Status{Code::protocol, fmt::format("a memory handle of {} bytes is none of shared memory ({} bytes)",
                                                  bytes.size(), sizeof handle)};
    std::memcpy(&handle, bytes.data(), sizeof handle);
    if (handle.magic != handle_magic)
        return Status{Code::protocol, "a memory handle that no transport over shared memory made"};
    if (handle.version != handle_version || handle.struct_size != sizeof handle)
        return Status{Code::protocol, fmt::format("the peer's memory handle has version {}, this PE's has version {}: "
                                                  "all PEs must run the same npushmem",
                                                  handle.version, handle_version)};
    if (handle.bytes > std::numeric_limits<std::uint64_t>::max() - handle.offset)
        return Status{Code::protocol, "a memory handle whose end lies beyond any file"};
    return handle;
}

}  // namespace npushmem::shared_memory
