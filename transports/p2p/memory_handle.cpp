#include "transports/p2p/memory_handle.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace npushmem::p2p {
namespace {

constexpr std::uint64_t handle_magic = 0x31503250'4d50554eU;  // "NUPMP2P1"
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
        return Status{Code::protocol, fmt::format("a memory handle of {} bytes is none of transport 'p2p' ({} bytes)",
                                                  bytes.size(), sizeof handle)};
    std::memcpy(&handle, bytes.data(), sizeof handle);
    if (handle.magic != handle_magic)
        return Status{Code::protocol, "a memory handle that transport 'p2p' did not make"};
    if (handle.version != handle_version || handle.struct_size != sizeof handle)
        return Status{Code::protocol,
                      fmt::format("the peer's p2p memory handle has version {}, this PE's has version {}: "
                                  "all PEs must run the same npushmem",
                                  handle.version, handle_version)};
    if (handle.bytes > std::numeric_limits<std::uint64_t>::max() - handle.offset)
        return Status{Code::protocol, "a p2p memory handle whose end lies beyond any file"};
    return handle;
}

}  // namespace npushmem::p2p
