// SPDX-License-Identifier: BSD-3-Clause
// Buffers of the program that are symmetric: each is an object of the symmetric heap, at the same offset on all PEs, of
// which the program's own address is a second one.
//
//     private memory   its contents move to the heap's pages, which replace the program's pages at their address
//     a shared file    its pages are mapped over the heap's pages, by all PEs of the host
//
//     program of this PE   | buffer |                           the same pages
//     slice of this PE     | control | heap ... buffer ... |    at two addresses
//
// So a buffer has addresses like any other object of the heap, for the PEs of the host and for transports, which
// registered the whole slice. The PEs' parts of one buffer may be of different kinds.
//
// Registration is collective and takes two barriers: before the first each PE allocates its part, before the second it
// maps it. Then it takes effect on all PEs or on none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/poller.hpp"
#include "core/memory/address_claim.hpp"
#include "core/memory/address_mappings.hpp"
#include "core/memory/collective_heap.hpp"
#include "core/memory/host_memory.hpp"
#include "core/memory/symmetric_heap.hpp"

namespace npushmem {

class RegisteredBuffers {
public:
    // All outlive this. `local_pe` of `local_pes` on this host. `opens_files`: each of them can open files of the
    // others' processes.
    RegisteredBuffers(HostMemory& memory, SymmetricHeap& heap, CollectiveHeap& collective, int local_pe, int local_pes,
                      bool opens_files = true)
        : memory_(memory),
          heap_(heap),
          collective_(collective),
          local_pe_(local_pe),
          local_pes_(local_pes),
          opens_files_(opens_files),
          slices_(AddressClaim::take(memory.slices(), memory.stride() * static_cast<std::uint64_t>(local_pes))) {}
    RegisteredBuffers(const RegisteredBuffers&) = delete;
    RegisteredBuffers& operator=(const RegisteredBuffers&) = delete;
    // Gives the program private memory back for its private buffers.
    ~RegisteredBuffers();

    // Collective: returns the symmetric address of the buffer. No other thread accesses it during the call. A failure
    // changes nothing.
    Result<void*> add(void* address, std::uint64_t bytes, int flags);
    // Collective: ends the registration of a buffer by its symmetric address and its size. Its contents stay at the
    // program's address, except where the program has mapped other memory meanwhile.
    Status remove(void* symmetric, std::uint64_t bytes);

    // Returns the symmetric address of a program's address in a buffer; null if it is in none. Any thread.
    [[nodiscard]] void* symmetric_address(const void* object) const;

private:
    struct Buffer {
        std::byte* address = nullptr;  // the program's
        std::uint64_t bytes = 0;
        FileDescriptor file;  // invalid: private memory
        std::uint64_t file_offset = 0;
        std::vector<int> covered;  // the local PEs over whose slices this process has mapped files
        std::optional<AddressClaim> claim;
    };

    [[nodiscard]] Result<Buffer> examine(void* address, std::uint64_t bytes, int flags) const;
    [[nodiscard]] Status check_arguments(const void* address, std::uint64_t bytes, int flags) const;
    // Publishes where this PE's part is. `call` is the number of the registration.
    Status publish(std::uint64_t call, const Buffer& mine);
    // Maps the files of this host's PEs, then moves a private buffer.
    Status map(std::uint64_t call, std::uint64_t offset, Buffer& buffer);
    Status map_file_of(int local_pe, std::uint64_t call, std::uint64_t offset, Buffer& buffer);
    Status move_to_heap(std::uint64_t offset, const Buffer& buffer);
    // Reverts `map`. A private buffer for which there is no memory keeps the heap's pages.
    Status unmap(std::uint64_t offset, const Buffer& buffer);
    Status move_back(std::uint64_t offset, const Buffer& buffer);
    // Returns whether the pages are those of this host's shared segment.
    [[nodiscard]] bool is_heap(const AddressMapping& mapping) const;
    [[nodiscard]] Result<std::uint64_t> find(const void* symmetric, std::uint64_t bytes) const;

    HostMemory& memory_;
    SymmetricHeap& heap_;
    CollectiveHeap& collective_;
    int local_pe_;
    int local_pes_;
    bool opens_files_;
    std::optional<AddressClaim> slices_;  // for other worlds, whose buffers they cannot be
    mutable std::mutex lock_;
    std::map<std::uint64_t, Buffer> buffers_;  // by offset; changed under lock_ by the collective calls
};

}  // namespace npushmem
