// SPDX-License-Identifier: BSD-3-Clause
// Operations in flight that need more than one request or a result word.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transports/network/wire.hpp"
#include "transports/verbs/connection_manager.hpp"
#include "transports/verbs/key_exchange.hpp"
#include "transports/verbs/local_memory.hpp"
#include "transports/verbs/registration_cache.hpp"

namespace npushmem::verbs {

// A write or read in flight that needs more than one request.
struct Transfer {
    struct Signal {
        RemoteWord at;
        std::uint64_t value;
    };
    network::WireContext* context = nullptr;  // null: no caller waits for it
    bool reads = false;
    std::byte* local = nullptr;  // the next byte, in the program's memory or in `buffer`
    std::uint64_t left = 0;
    RemoteMemory* remote = nullptr;
    std::uint64_t base = 0;
    std::uint64_t offset = 0;
    std::optional<Signal> signal;  // sent after the last byte
    // The memory that holds the bytes, unless it is registered permanently.
    RegistrationCache::Registration registration;
    std::byte* buffer = nullptr;
    void* copy_to = nullptr;  // destination of the final copy from `buffer`
    std::uint64_t copy_size = 0;
};

// Carries out writes and reads of any size, in as many requests as they need.
class Transfers {
public:
    // An operation as the transport requests it.
    struct Operation {
        const network::RemoteAddress& place;
        void* local;
        std::uint64_t bytes;
        bool reads;
        const network::RemoteAddress* signal_at;  // null: none
        std::uint64_t signal;
        network::WireContext& context;
    };

    // `bounce_buffers`: for short transfers of memory that is not registered. The other arguments outlive this object.
    Transfers(OpenedPort& port, LocalMemory& memory, std::shared_ptr<RegistrationCache> cache,
              std::unique_ptr<BufferPool> bounce_buffers, KeyExchange& keys, RequestPoster& poster,
              ServiceQueue& service, DeferredFailures& failures)
        : port_(port),
          memory_(memory),
          keys_(keys),
          poster_(poster),
          service_(service),
          failures_(failures),
          cache_(std::move(cache)),
          bounce_buffers_(std::move(bounce_buffers)) {}

    // Results as those of network::Wire::write. A transfer that is posted in part continues in `resume`.
    Code start(Connection& connection, const Operation& operation);
    // Continues the connection's unfinished transfer. True when it made progress.
    bool resume(network::WireListener& listener, Connection& connection, ConnectionTable& connections);
    void completed(network::WireListener& listener, Transfer& transfer, const Status& done);

private:
    Prepared prepare_keys(Connection& connection, const Operation& operation);
    Prepared prepare_local(Transfer& transfer, void* local, std::uint64_t bytes);
    // Code::ok: the transfer is posted completely. Code::again: there is no room for the rest now.
    Code post_remaining(Connection& connection, Transfer& transfer);
    void add_pieces(Connection& connection, Transfer& transfer, WorkChain& chain, std::uint32_t max_size);
    [[nodiscard]] LocalMemory::Piece local_piece(const Transfer& transfer) const;
    Transfer& take(const Operation& operation);
    void release(Transfer& transfer);

    OpenedPort& port_;
    LocalMemory& memory_;
    KeyExchange& keys_;
    RequestPoster& poster_;
    ServiceQueue& service_;
    DeferredFailures& failures_;
    // Destroyed in reverse order: registrations of transfers before the cache.
    std::shared_ptr<RegistrationCache> cache_;  // of this port; also in RegistrationCaches
    std::unique_ptr<BufferPool> bounce_buffers_;
    std::deque<Transfer> transfers_;
    std::vector<Transfer*> free_transfers_;
};

// The result words of atomics in flight: the NIC stores the old value there.
class AtomicResults {
public:
    explicit AtomicResults(std::unique_ptr<BufferPool> words, std::size_t count)
        : words_(std::move(words)), fetches_(count) {}

    // A word for the result, which `completed` copies to `copy_to` unless that is null. Null: all are in use.
    [[nodiscard]] std::byte* take(network::WireContext& context, void* copy_to, std::uint8_t width) {
        std::byte* const word = words_->take();
        if (word != nullptr) fetches_[words_->index_of(word)] = {&context, copy_to, width};
        return word;
    }
    [[nodiscard]] LocalSegment segment(const std::byte* word) const {
        return {word, sizeof(std::uint64_t), words_->lkey()};
    }
    void release(std::byte* word) { words_->release(word); }
    void completed(network::WireListener& listener, std::byte* word, const Status& done);

private:
    struct Fetch {
        network::WireContext* context;
        void* copy_to;  // null: discard the result
        std::uint8_t width;
    };
    std::unique_ptr<BufferPool> words_;
    std::vector<Fetch> fetches_;  // by the index of the word
};

}  // namespace npushmem::verbs
