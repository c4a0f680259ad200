// SPDX-License-Identifier: BSD-3-Clause
// One context's operations on unmapped PEs, whose memory the CPU does not see. Offsets count from the beginning of a
// slice. Any thread may call it.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "core/map/strided_blocks.hpp"
#include "core/remote/remote_context.hpp"

namespace npushmem {

// Words in which the results of fetches arrive, so that a late result does not write to memory of a caller that has
// left. The word of a failed fetch stays allocated. Any thread may call it.
class FetchResults {
public:
    std::uint64_t* acquire();
    void release(std::uint64_t* word);

private:
    std::atomic<std::uint64_t*> spare_{nullptr};  // released last and not reused yet: reuse needs no lock
    std::mutex lock_;                             // for all below
    std::deque<std::uint64_t> words_;             // a deque: addresses stay valid
    std::vector<std::uint64_t*> free_;
};

class RemoteAccess {
public:
    using Completion = RemoteContext::Completion;
    using WaitFunction = RemoteContext::WaitFunction;

    // `peers` outlives this.
    explicit RemoteAccess(RemotePeers& peers) : peers_(peers), context_(peers) {}
    RemoteAccess(const RemoteAccess&) = delete;
    RemoteAccess& operator=(const RemoteAccess&) = delete;
    // Closes the queues; cancels outstanding operations.
    ~RemoteAccess() = default;

    Status put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    Status get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    // Transfer many blocks with as few requests as possible. Blocks that are adjacent at the PE are gathered here
    // first; other short blocks share calls of put_strided if the transport has it; small gaps between blocks are read
    // too and dropped. Return when local memory may be reused. On failure some blocks may have been transferred.
    Status put_blocks(int pe, const StridedBlocks& blocks, const void* source);
    Status get_blocks(int pe, const StridedBlocks& blocks, void* dest);
    // Fills in op.remote. A fetching operation with `deferred` completion writes *op.result before quiet returns. With
    // `local` completion it writes the result only when it succeeds: a caller that timed out may have left.
    Status atomic(npushmem_atomic op, Completion completion, const WaitFunction* waiter = nullptr);
    Status put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                      std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation, Completion completion,
                      const WaitFunction* waiter = nullptr);
    // See RemoteContext.
    Status fence(const WaitFunction* waiter = nullptr) { return context_.fence(waiter); }
    Status fence(int pe, const WaitFunction* waiter) { return context_.fence(pe, waiter); }
    Status quiet(const WaitFunction* waiter = nullptr) { return context_.quiet(waiter); }
    Status complete() { return context_.complete(); }
    Status quiet(std::span<const int> pes, const WaitFunction* waiter = nullptr) { return context_.quiet(pes, waiter); }
    // See RemotePeers::progress.
    Status progress() { return peers_.progress(); }

private:
    // Returns `done`. If it failed, keeps the staging memory, which the transport may still access.
    Status retain_staging(Status done, std::vector<std::byte> staging);
    // Gathers adjacent blocks in staging memory.
    Status put_gathered(int pe, const StridedBlocks& blocks, const std::byte* from);
    // Needs the capability.
    Status put_strided(int pe, const StridedBlocks& blocks, const std::byte* from);
    // Reads the gaps between blocks too.
    Status get_with_gaps(int pe, const StridedBlocks& blocks, std::byte* to);

    RemotePeers& peers_;
    FetchResults fetch_results_;
    std::mutex staging_lock_;
    // Staging of failed or timed-out requests. Under staging_lock_.
    std::vector<std::vector<std::byte>> abandoned_staging_;
    RemoteContext context_;  // last: until its queues are closed, the transport may access the memory above
};

}  // namespace npushmem
