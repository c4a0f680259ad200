// The bytes by which a PE tells the others of its host where its memory is.
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

// May two PEs share memory? A pure function of their hosts' identities.

// "" when they may; else a clause for people that says what separates them.
std::string why_not_shareable(const npushmem_host_id& own, const npushmem_host_id& peer);

// What tells one process from a later one with the same number.

// When the process started, in clock ticks since the machine did. Code::peer_dead when there is no such process.
Result<std::uint64_t> start_time_of(int process);

// Field 22 of a /proc/<pid>/stat line; 0 when the line is not one. The second field, a name in parentheses, may itself
// contain blanks and parentheses.
std::uint64_t start_time_in(std::string_view stat_line);

// Part of another process's shared file, mapped into this one; unmapped when the value goes.
class PeerMapping {
public:
    // Opens the file through the peer's descriptor, makes sure that it is the one the handle means, and maps the
    // handle's range. The error says why not: the process has gone, permission, a descriptor used for something else
    // meanwhile, a file too short.
    static Result<std::shared_ptr<const PeerMapping>> make(const MemoryHandle& handle);

    PeerMapping(void* start, std::size_t length, std::size_t lead) : start_(start), length_(length), lead_(lead) {}
    PeerMapping(const PeerMapping&) = delete;
    PeerMapping& operator=(const PeerMapping&) = delete;
    ~PeerMapping();

    // Where the handle's range begins.
    [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(start_) + lead_; }

private:
    void* start_;         // of whole pages
    std::size_t length_;  // likewise
    std::size_t lead_;    // from the first page's begin to the range's
};

}  // namespace npushmem::shared_memory
