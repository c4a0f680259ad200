// SPDX-License-Identifier: BSD-3-Clause
// The services that the MoE code needs from the runtime, besides the device. The API layer implements them, and so does
// a test over threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/moe/common/element.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::moe {

// Called by one thread at a time.
class SymmetricMemory {
public:
    SymmetricMemory() = default;
    SymmetricMemory(const SymmetricMemory&) = delete;
    SymmetricMemory& operator=(const SymmetricMemory&) = delete;
    virtual ~SymmetricMemory() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    [[nodiscard]] virtual int n_pes() const = 0;
    // Collective, with equal sizes. The memory is 128-byte aligned. This PE's part is zeroed on return, a peer's part
    // after the next barrier.
    virtual Result<std::byte*> allocate(Bytes size) = 0;
    // Collective; null does nothing.
    virtual void release(std::byte* memory) = 0;
    // Barrier of all PEs; stores before it are visible to all PEs after it.
    virtual Status barrier() = 0;
    // Copies from the peer's part of symmetric memory.
    virtual Status fetch(void* target, const std::byte* symmetric, Bytes size, int pe) = 0;
    // Atomically replaces the peer's word by `desired` if it is `expected`. Returns the previous value.
    virtual Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                               int pe) = 0;

    // For peers whose memory is not mapped. The `source` of a put must stay unchanged until quiet. fence orders earlier
    // puts and additions before later stores, per peer.
    virtual void put(std::byte* symmetric, const std::byte* source, Bytes size, int pe) = 0;
    virtual void add(std::uint64_t* symmetric, std::uint64_t value, int pe) = 0;
    virtual void fence() = 0;
    // Stores a word that the peer waits for.
    virtual void signal(std::uint64_t* symmetric, std::uint64_t value, int pe) = 0;
    // Completes all of these operations. Returns the first failure since the last quiet.
    virtual Status quiet() = 0;
    // Waits until `ready` returns true; `ready` reads words that other PEs signal. Waits no longer than `timeout` (0:
    // the library's timeout). Fails with Code::timeout, or with the number of a PE that has died.
    virtual Status wait(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) = 0;
};

// Owns one allocation. Its destruction is collective.
class SymmetricBlock {
public:
    SymmetricBlock() = default;
    SymmetricBlock(SymmetricMemory& memory, std::byte* data) : memory_(&memory), data_(data) {}
    SymmetricBlock(SymmetricBlock&& other) noexcept : memory_(other.memory_), data_(other.data_) {
        other.data_ = nullptr;
    }
    SymmetricBlock& operator=(SymmetricBlock&& other) noexcept {
        if (this != &other) {
            reset();
            memory_ = other.memory_;
            data_ = other.data_;
            other.data_ = nullptr;
        }
        return *this;
    }
    SymmetricBlock(const SymmetricBlock&) = delete;
    SymmetricBlock& operator=(const SymmetricBlock&) = delete;
    ~SymmetricBlock() { reset(); }

    [[nodiscard]] std::byte* data() const { return data_; }

private:
    void reset() {
        if (data_ != nullptr) memory_->release(data_);
        data_ = nullptr;
    }

    SymmetricMemory* memory_ = nullptr;
    std::byte* data_ = nullptr;
};

// Collective, like SymmetricMemory::allocate. The error names the purpose.
Result<SymmetricBlock> allocate_block(SymmetricMemory& memory, Bytes size, const char* purpose);

// The ranks that a kernel of this PE cannot access by loads and stores: per rank, 1 if its part of `symmetric` is not
// mapped here. Empty if all are mapped.
inline std::vector<std::uint8_t> unmapped_ranks(const npu::Fabric& fabric, const SymmetricMemory& memory,
                                                const std::byte* symmetric) {
    std::vector<std::uint8_t> unmapped(static_cast<std::size_t>(memory.n_pes()), 0);
    for (int pe = 0; pe < memory.n_pes(); ++pe) {
        unmapped[static_cast<std::size_t>(pe)] = fabric.remote(symmetric, pe) == nullptr ? 1 : 0;
    }
    if (std::ranges::count(unmapped, 1) == 0) unmapped.clear();
    return unmapped;
}

// A caller's buffer, for checks of its address.

struct Extent {
    const char* name;
    const std::byte* begin;
    Bytes size;
};

// Rejects null (unless the extent is empty), and an address that is not a multiple of the element's size.
Status check_address(const Extent& extent, ElementSize element);

// Rejects extents that share a byte.
Status check_apart(const Extent& a, const Extent& b);

}  // namespace npushmem::moe
