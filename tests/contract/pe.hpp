// SPDX-License-Identifier: BSD-3-Clause
// A PE under test, and its memory: a mapped part of an unnamed file, like the runtime's symmetric heap.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "npushmem/plugin/transport.h"
#include "npushmem/plugin/transport.hpp"
#include "npushmem/testing/printers.hpp"

namespace npushmem::contract {

// Owns the descriptor; shared by the mappings of one file.
class SharedFile {
public:
    explicit SharedFile(std::uint64_t bytes)
        : descriptor_(::memfd_create("npushmem-contract", MFD_CLOEXEC)), bytes_(bytes) {
        if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
            throw std::runtime_error("cannot make shared memory for the contract tests");
    }
    // Another process's file of this size, whose descriptor was inherited.
    SharedFile(int descriptor, std::uint64_t bytes) : descriptor_(descriptor), bytes_(bytes) {}
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;
    ~SharedFile() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    int descriptor_;
    std::uint64_t bytes_;
};

// The whole file mapped once, and the slice of it that belongs to one PE.
class Slice {
public:
    Slice(std::shared_ptr<const SharedFile> file, std::uint64_t offset, std::uint64_t bytes)
        : file_(std::move(file)),
          mapping_(::mmap(nullptr, file_->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file_->descriptor(), 0)),
          offset_(offset),
          bytes_(bytes) {
        if (mapping_ == MAP_FAILED) throw std::runtime_error("cannot map shared memory for the contract tests");
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;
    ~Slice() { ::munmap(mapping_, file_->bytes()); }

    [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(mapping_) + offset_, bytes_}; }
    [[nodiscard]] npushmem_memory describe() const {
        npushmem_memory out{};
        out.struct_size = sizeof out;
        out.fd = file_->descriptor();
        out.fd_offset = offset_;
        out.base = bytes().data();
        out.bytes = bytes_;
        out.mapping = mapping_;
        out.mapping_bytes = file_->bytes();
        return out;
    }

private:
    std::shared_ptr<const SharedFile> file_;
    void* mapping_;
    std::uint64_t offset_;
    std::uint64_t bytes_;
};

// One PE under test: an instance of the transport, its memory, and calls that wait as the contract allows.

// The limit of waits for something that the transport must bring about: TransportSubject::wait_timeout of the case that
// runs; 20 s until it is set.
[[nodiscard]] std::chrono::milliseconds wait_timeout();
void set_wait_timeout(std::chrono::milliseconds limit);

// Bounds every wait: a transport that never completes fails its test instead of hanging it. Time in which the process
// got no processor does not count: the wait has also called the transport a number of times.
class Deadline {
public:
    explicit Deadline(std::chrono::milliseconds limit = wait_timeout()) : end_(Clock::now() + limit) {}
    // Call once after each unsuccessful call of the transport.
    [[nodiscard]] bool expired() { return ++calls_ >= min_calls && Clock::now() > end_; }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr int min_calls = 50;
    Clock::time_point end_;
    int calls_ = 0;
};

class Pe {
public:
    // The data that a peer needs to connect.
    struct ConnectInfo {
        Bytes address;
        Bytes handle;
    };

    Pe(int number, std::unique_ptr<Transport> transport, std::unique_ptr<Slice> slice)
        : number_(number), slice_(std::move(slice)), transport_(std::move(transport)) {}
    Pe(const Pe&) = delete;
    Pe& operator=(const Pe&) = delete;
    ~Pe();

    // Registers the memory and makes a queue. Returns the data for the peers.
    Result<ConnectInfo> publish();
    // Calls reach, connect and import. Skips a peer that cannot be reached.
    Status connect(npushmem_peer peer, const ConnectInfo& info);
    // Sets a function that runs while this PE waits, besides its own progress.
    void set_wait_hook(std::function<void()> hook) { wait_hook_ = std::move(hook); }

    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] Transport& transport() const { return *transport_; }
    [[nodiscard]] std::span<std::byte> memory() const { return slice_->bytes(); }
    [[nodiscard]] const Slice& slice() const { return *slice_; }
    [[nodiscard]] std::uint64_t queue() const { return queue_; }
    [[nodiscard]] const Reach& reach(int pe) const { return reach_.at(pe); }
    [[nodiscard]] bool is_connected(int pe) const { return remote_.contains(pe); }
    [[nodiscard]] std::uint64_t remote(int pe) const { return remote_.at(pe); }
    [[nodiscard]] Bytes handle() const { return handle_; }

    [[nodiscard]] npushmem_rma rma(int pe, std::uint64_t offset, void* local, std::uint64_t bytes) const;
    [[nodiscard]] npushmem_atomic atomic_op(int pe, std::uint64_t offset, std::uint8_t operation,
                                            std::uint8_t width) const;

    // Post an operation, and repeat while the transport returns again. `queue` 0 is the PE's own queue.
    Code put(int pe, std::uint64_t offset, const void* from, std::uint64_t bytes, std::uint64_t* token = nullptr,
             std::uint64_t queue = 0);
    Code get(int pe, std::uint64_t offset, void* to, std::uint64_t bytes, std::uint64_t* token = nullptr,
             std::uint64_t queue = 0);
    Code atomic(const npushmem_atomic& op, std::uint64_t* token = nullptr, std::uint64_t queue = 0);
    Code put_signal(const npushmem_put_signal& op, std::uint64_t* token = nullptr);
    Code put_strided(const npushmem_put_strided& op, std::uint64_t* token = nullptr);
    Code fence(std::uint64_t queue = 0);
    Code quiet(std::uint64_t queue = 0);
    // Waits until the token is complete.
    Code wait(std::uint64_t token, std::uint64_t queue = 0);
    // Makes progress until `done` returns true. Code::timeout if it does not in time.
    Code until(const std::function<bool()>& done);

private:
    Code repeat(const std::function<Code()>& call);
    void poll_once();
    [[nodiscard]] std::uint64_t or_own(std::uint64_t queue) const { return queue != 0 ? queue : queue_; }

    int number_;
    std::unique_ptr<Slice> slice_;  // outlives the transport that uses it
    std::unique_ptr<Transport> transport_;
    std::function<void()> wait_hook_;
    std::uint64_t queue_ = 0;
    std::uint64_t region_ = 0;
    Bytes handle_;
    std::map<int, Reach> reach_;
    std::map<int, std::uint64_t> remote_;
};

}  // namespace npushmem::contract
