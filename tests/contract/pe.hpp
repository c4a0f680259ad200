// One PE under test: an instance of the transport, its memory, and calls that wait as the contract allows.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "npushmem/plugin/transport.hpp"
#include "tests/contract/shared_file.hpp"

namespace npushmem::contract {

// Bounds every wait: a transport that never completes fails its test instead of hanging it.
class Deadline {
public:
    explicit Deadline(std::chrono::seconds limit = std::chrono::seconds(20)) : end_(Clock::now() + limit) {}
    [[nodiscard]] bool expired() const { return Clock::now() > end_; }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point end_;
};

class Pe {
public:
    // What a peer must be told.
    struct ConnectInfo {
        Bytes address;
        Bytes handle;
    };

    Pe(int number, std::unique_ptr<Transport> transport, std::unique_ptr<Slice> slice)
        : number_(number), slice_(std::move(slice)), transport_(std::move(transport)) {}
    Pe(const Pe&) = delete;
    Pe& operator=(const Pe&) = delete;
    ~Pe();

    // Registers the memory and makes a queue. The information is for the peers.
    Result<ConnectInfo> publish();
    // reach, connect and import. Leaves a peer that cannot be reached alone.
    Status connect(npushmem_peer peer, const ConnectInfo& info);
    // What happens while this PE waits, besides its own progress.
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

    // Posts, and repeats while the transport returns again. `queue` 0 is the PE's own.
    Code put(int pe, std::uint64_t offset, const void* from, std::uint64_t bytes, std::uint64_t* token = nullptr,
             std::uint64_t queue = 0);
    Code get(int pe, std::uint64_t offset, void* to, std::uint64_t bytes, std::uint64_t* token = nullptr,
             std::uint64_t queue = 0);
    Code atomic(const npushmem_atomic& op, std::uint64_t* token = nullptr, std::uint64_t queue = 0);
    Code put_signal(const npushmem_put_signal& op, std::uint64_t* token = nullptr);
    Code fence(std::uint64_t queue = 0);
    Code quiet(std::uint64_t queue = 0);
    // Until the token is complete.
    Code wait(std::uint64_t token, std::uint64_t queue = 0);
    // Lets things happen until `done`; Code::timeout when they do not.
    Code until(const std::function<bool()>& done);

private:
    Code repeat(const std::function<Code()>& call);
    void poll_once();
    [[nodiscard]] std::uint64_t or_own(std::uint64_t queue) const { return queue != 0 ? queue : queue_; }

    int number_;
    std::unique_ptr<Slice> slice_;  // outlives the transport that was told of it
    std::unique_ptr<Transport> transport_;
    std::function<void()> wait_hook_;
    std::uint64_t queue_ = 0;
    std::uint64_t region_ = 0;
    Bytes handle_;
    std::map<int, Reach> reach_;
    std::map<int, std::uint64_t> remote_;
};

}  // namespace npushmem::contract
