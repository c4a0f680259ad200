// The bytes by which a PE tells the others of its host where its memory is.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "npushmem/plugin/transport.hpp"

namespace npushmem::shared_memory {

// Fixed layout, native order of bytes: only processes of one machine exchange it. No raw pointers.
//
//     0 magic  8 version  12 size | 16 process  20 descriptor  24 start time | 32 device  40 inode
//     48 offset  56 bytes | 64 host identity (24 bytes)
struct MemoryHandle {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t struct_size;
    std::int32_t process;
    std::int32_t descriptor;   // of the file that backs the memory, in that process
    std::uint64_t start_time;  // of the process, in clock ticks since the machine started: tells a reused number
    std::uint64_t device;      // st_dev and st_ino of the file: tells a reused descriptor
    std::uint64_t inode;
    std::uint64_t offset;  // of the memory within the file
    std::uint64_t bytes;
    npushmem_host_id host;
};
static_assert(sizeof(MemoryHandle) == 88 && sizeof(MemoryHandle) <= NPUSHMEM_HANDLE_MAX);
static_assert(std::is_trivially_copyable_v<MemoryHandle>);

Bytes encode(MemoryHandle handle);

// Code::protocol for bytes that no transport over shared memory of this version wrote.
Result<MemoryHandle> decode(std::span<const std::byte> bytes);

}  // namespace npushmem::shared_memory
