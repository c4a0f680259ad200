// SPDX-License-Identifier: BSD-3-Clause
// Handles by which PEs of one host map each other's memory, and the mappings made from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::shared_memory {

// Names a range of a file that backs a PE's memory. Fixed layout in native byte order, because only processes of one
// machine exchange it. It contains no pointers.
//
//     0 magic  8 version  12 size | 16 process  20 descriptor  24 start time | 32 device  40 inode
//     48 offset  56 bytes | 64 host identity (24 bytes)
struct MemoryHandle {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t struct_size;
    std::int32_t process;
    std::int32_t descriptor;   // of the file that backs the memory, in that process
    std::uint64_t start_time;  // of the process, in clock ticks since boot: detects a reused process ID
    std::uint64_t device;      // st_dev and st_ino of the file: detect a reused descriptor
    std::uint64_t inode;
    std::uint64_t offset;  // of the memory within the file
    std::uint64_t bytes;
    npushmem_host_id host;
};
static_assert(sizeof(MemoryHandle) == 88 && sizeof(MemoryHandle) <= NPUSHMEM_HANDLE_MAX);
static_assert(std::is_trivially_copyable_v<MemoryHandle>);

Bytes encode(MemoryHandle handle);

// Fails with Code::protocol unless a shared-memory transport of this version wrote the bytes.
Result<MemoryHandle> decode(std::span<const std::byte> bytes);

// Why two PEs cannot share memory, as a clause for people; empty when they can. A pure function of the host identities.
std::string why_not_shareable(const npushmem_host_id& own, const npushmem_host_id& peer);

// The start time of the process, in clock ticks since boot. It distinguishes a process from a later one with the same
// ID. Code::peer_dead when the process does not exist, Code::system when /proc does not show it.
Result<std::uint64_t> start_time_of(int process);

// A range of another process's shared file, mapped into this process. The destructor unmaps it.
class PeerMapping {
public:
    // Opens the file through the peer's descriptor, verifies that it is the file that the handle names, and maps the
    // handle's range. The error names the cause: the process has ended, permission is missing, the descriptor was
    // reused, the file is too short.
    static Result<std::shared_ptr<const PeerMapping>> make(const MemoryHandle& handle);

    PeerMapping(void* start, std::size_t length, std::size_t lead) : start_(start), length_(length), lead_(lead) {}
    PeerMapping(const PeerMapping&) = delete;
    PeerMapping& operator=(const PeerMapping&) = delete;
    ~PeerMapping();

    // The start of the handle's range.
    [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(start_) + lead_; }

private:
    void* start_;         // page-aligned
    std::size_t length_;  // in whole pages
    std::size_t lead_;    // bytes from the start of the first page to the range
};

}  // namespace npushmem::shared_memory
