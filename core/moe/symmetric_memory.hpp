// What the MoE code needs of the runtime besides its device: the runtime's API implements it, and a test over threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/moe/units.hpp"
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
    // Collective, with equal sizes: 128-byte aligned, this PE's part zeroed (a peer's only after a barrier).
    virtual Result<std::byte*> allocate(Bytes size) = 0;
    // Collective; null does nothing.
    virtual void release(std::byte* memory) = 0;
    // All PEs meet; what they stored before is visible to all after.
    virtual Status barrier() = 0;
    // Copies from the peer's part of symmetric memory.
    virtual Status fetch(void* target, const std::byte* symmetric, Bytes size, int pe) = 0;
    // Replaces the peer's word by `desired` if it is `expected`, atomically. Returns the word before.
    virtual Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                               int pe) = 0;

    // For peers whose memory is not mapped. `source` of a put must stay unchanged until quiet; fence orders puts and
    // additions before the stores that follow, to each peer.
    virtual void put(std::byte* symmetric, const std::byte* source, Bytes size, int pe) = 0;
    virtual void add(std::uint64_t* symmetric, std::uint64_t value, int pe) = 0;
    virtual void fence() = 0;
    // Stores a word that the peer waits for.
    virtual void signal(std::uint64_t* symmetric, std::uint64_t value, int pe) = 0;
    // All of these are complete; the first failure since the last quiet.
    virtual Status quiet() = 0;
    // Waits until `ready`, which looks at words that others signal; no longer than `timeout` (0: the library's own).
    // Fails with Code::timeout, or names the PE that has died.
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

}  // namespace npushmem::moe
