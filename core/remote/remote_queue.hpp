// SPDX-License-Identifier: BSD-3-Clause
// One queue to one PE, the common base of the host's calls, the proxy and kernels in direct mode: it posts, orders and
// polls operations, and never waits. Its users differ in how they wait and in who receives failures.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/remote/remote_peers.hpp"

namespace npushmem {

// The caller serializes all calls.
class RemoteQueue {
public:
    // How much of a put with signal is posted. Begin with a new one for each operation.
    struct PutSignalProgress {
        bool is_data_posted = false;
        std::uint64_t data_token = 0;
    };

    // Owns `link` and closes it. `peers` outlives this.
    RemoteQueue(RemotePeers& peers, const RemotePeers::Link& link)
        : peers_(peers),
          link_(link),
          transport_(*peers.named(link.transport).transport),
          has_put_signal_(peers.reach(link.pe).has(NPUSHMEM_CAP_PUT_SIGNAL)) {}
    RemoteQueue(const RemoteQueue&) = delete;
    RemoteQueue& operator=(const RemoteQueue&) = delete;
    // Cancels outstanding operations. Until then the transport may access the memory of those that have not completed.
    ~RemoteQueue() { peers_.close(link_); }

    // Post an operation and fill in its remote region. Code::again: the transport has no room, try again. A caller that
    // passes a `token` and receives another number than 0 polls it with test() until that does not return again, or
    // calls abandon_token().
    Code put(npushmem_rma& op, std::uint64_t* token) {
        op.remote = link_.remote;
        return record(transport_.put(link_.queue, op, token), true, token);
    }
    Code put_strided(npushmem_put_strided& op, std::uint64_t* token) {
        op.block.remote = link_.remote;
        return record(transport_.put_strided(link_.queue, op, token), true, token);
    }
    Code get(npushmem_rma& op, std::uint64_t* token) {
        op.remote = link_.remote;
        return record(transport_.get(link_.queue, op, token), false, token);
    }
    Code atomic(npushmem_atomic& op, std::uint64_t* token) {
        op.remote = link_.remote;
        return record(transport_.atomic(link_.queue, op, token), op.operation != NPUSHMEM_ATOMIC_FETCH, token);
    }
    // Posts a put, a fence and an atomic where the transport has no put with signal. After Code::again the caller
    // repeats the call with the same arguments, or drops the operation.
    Code put_signal(npushmem_put_signal& op, PutSignalProgress& progress, std::uint64_t* token);

    // Orders earlier updates before later operations. Calls the transport only if there are any since the last fence or
    // quiet: a fence orders neither gets nor plain fetches.
    Code fence();
    // Polls an operation.
    Code test(std::uint64_t token);
    // The caller stops polling a token.
    void abandon_token() { --awaited_tokens_; }
    // Returns Code::ok when everything posted so far is complete. Its failure is that of any operation without a token.
    Code quiet();

    // Returns whether operations were posted since the last successful quiet.
    [[nodiscard]] bool outstanding() const { return outstanding_; }
    // Whether a quiet over all PEs waits for this one; until the next successful quiet.
    [[nodiscard]] bool is_awaited() const { return awaited_; }
    void set_awaited() { awaited_ = true; }
    [[nodiscard]] int pe() const { return link_.pe; }
    [[nodiscard]] const std::string& transport_name() const { return peers_.named(link_.transport).name; }
    // Describes why `what` failed with `code`.
    [[nodiscard]] Status failure_of(const char* what, Code code) const { return peers_.failure_of(link_, what, code); }

private:
    // Records an operation that the transport accepted. `token` may be null.
    Code record(Code code, bool is_update, const std::uint64_t* token) {
        if (code != Code::ok) return code;
        outstanding_ = true;
        unfenced_ = unfenced_ || is_update;
        if (token != nullptr && *token != 0) ++awaited_tokens_;
        return code;
    }
    Code put_then_signal(npushmem_put_signal& op, PutSignalProgress& progress, std::uint64_t* token);

    RemotePeers& peers_;
    const RemotePeers::Link link_;
    Transport& transport_;
    const bool has_put_signal_;
    bool outstanding_ = false;
    bool awaited_ = false;
    bool unfenced_ = false;   // updates were posted since the last fence or quiet
    int awaited_tokens_ = 0;  // operations whose callers poll their own tokens
};

// The queues of one user by PE; each is opened at the first use of its PE. The caller serializes all calls.
template <class Queue>
class QueueTable {
public:
    // `peers` outlives this.
    explicit QueueTable(RemotePeers& peers) : peers_(peers) {}

    // Null: the PE has not been used yet.
    [[nodiscard]] Queue* find(int pe) const {
        return static_cast<std::size_t>(pe) < by_pe_.size() ? by_pe_[static_cast<std::size_t>(pe)] : nullptr;
    }
    // Connects to the PE if no user has.
    Result<Queue*> find_or_open(int pe) {
        if (Queue* const known = find(pe)) return known;
        const auto link = peers_.open(pe);
        if (!link.ok()) return link.status();
        transports_ |= std::uint64_t{1} << link.value().transport;
        const auto index = static_cast<std::size_t>(pe);
        if (index >= by_pe_.size()) by_pe_.resize(index + 1);
        return by_pe_[index] = &queues_.emplace_back(peers_, link.value());
    }
    // The transports of the queues, one bit each.
    [[nodiscard]] std::uint64_t transports() const { return transports_; }
    [[nodiscard]] auto begin() { return queues_.begin(); }
    [[nodiscard]] auto end() { return queues_.end(); }

private:
    RemotePeers& peers_;
    std::deque<Queue> queues_;   // a deque: addresses stay valid
    std::vector<Queue*> by_pe_;  // null: unused
    std::uint64_t transports_ = 0;
};

}  // namespace npushmem
