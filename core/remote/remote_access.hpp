// One context's operations on unmapped PEs, whose memory the CPU does not see. The context has its own queue for each
// PE, created when it first uses the PE. So a wait concerns only this context, and a wait for a PE only that PE.
// Offsets count from the beginning of a slice.
//
// Any thread may call it. One lock protects every call on the queues, because a queue accepts one caller at a time. No
// caller waits while holding it, and each context has a lock of its own.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/map/strided_blocks.hpp"
#include "core/remote/remote_peers.hpp"

namespace npushmem {

class RemoteAccess {
public:
    enum class Completion {
        local,
        deferred
    };  // local: return when local memory may be reused; deferred: return at once, quiet completes

    // The wait function of callers that are fibers: waits for `ready()`, or returns why it cannot. Null: waits as the
    // peers do.
    using WaitFunction = std::function<Status(const std::function<bool()>& ready, const WaitFor& what)>;

    // `peers` outlives this.
    explicit RemoteAccess(RemotePeers& peers) : peers_(peers) {}
    RemoteAccess(const RemoteAccess&) = delete;
    RemoteAccess& operator=(const RemoteAccess&) = delete;
    // Closes the queues; cancels outstanding operations.
    ~RemoteAccess();

    Status put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    Status get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    // Transfer many blocks with as few requests as possible. Blocks that are adjacent at the PE are gathered here
    // first; small gaps between blocks are read too and dropped. Return when local memory may be reused. On failure
    // some blocks may have been transferred.
    Status put_blocks(int pe, const StridedBlocks& blocks, const void* source);
    Status get_blocks(int pe, const StridedBlocks& blocks, void* dest);
    // Fills in op.remote. A fetching operation with `deferred` completion writes *op.result before quiet returns. With
    // `local` completion it writes the result only when it succeeds: a caller that timed out may have left.
    Status atomic(npushmem_atomic op, Completion completion, const WaitFunction* waiter = nullptr);
    Status put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                      std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation, Completion completion,
                      const WaitFunction* waiter = nullptr);
    Status fence(const WaitFunction* waiter = nullptr);
    // Orders the operations posted to this PE.
    Status fence(int pe, const WaitFunction* waiter);
    Status quiet(const WaitFunction* waiter = nullptr);
    // Completes the operations posted to these PEs. An unused PE is complete.
    Status quiet(std::span<const int> pes, const WaitFunction* waiter = nullptr);
    // See RemotePeers::progress.
    Status progress() { return peers_.progress(); }

private:
    // Returns `done`. If it failed, keeps the staging memory, which the transport may still access.
    Status retain_staging(Status done, std::vector<std::byte> staging);
    struct Link : RemotePeers::Link {
        bool outstanding = false;  // operations were posted since the last quiet; then it is in outstanding_
        int awaited = 0;           // operations whose callers wait for their own tokens
    };
    using Links = std::vector<Link*>;

    // With the lock held. Null: the PE has not been used yet.
    [[nodiscard]] Link* find_link(int pe) const {
        return static_cast<std::size_t>(pe) < by_pe_.size() ? by_pe_[static_cast<std::size_t>(pe)] : nullptr;
    }
    Result<Link*> link(int pe);
    Links outstanding();
    void mark_posted(Link& link);
    Transport& transport_of(const Link& link) const { return *peers_.named(link.transport).transport; }

    // Calls `post_once` and counts its token if it gave one.
    template <class Post>
    Code post_counted(Link& link, const std::uint64_t& token, Post&& post_once);
    // With the lock held.
    Code test(Link& link, std::uint64_t token);
    // Waits until the operation is complete or the wait fails.
    Status await(Link& link, const char* what, const WaitFunction* waiter, std::uint64_t token);
    // Calls `post_once(link, token)` until the transport accepts the operation; with `local` completion also waits for
    // it. The common case, a known PE that accepts at once, takes the lock once.
    template <class Post>
    Status post(int pe, const char* what, Completion completion, const WaitFunction* waiter, Post&& post_once);
    Status put_or_get(Code (Transport::*how)(std::uint64_t, const npushmem_rma&, std::uint64_t*), const char* what,
                      npushmem_rma op, Completion completion, const WaitFunction* waiter);
    // Reads the gaps between blocks too.
    Status get_with_gaps(int pe, const StridedBlocks& blocks, std::byte* to);
    // With the lock held.
    std::uint64_t* acquire_fetch_result();
    // Without the lock.
    void release_fetch_result(std::uint64_t* word);
    template <class Post>
    Status post_each(Link& link, const char* what, std::uint64_t count, Post&& post_once);
    template <class Step>
    Status repeat(const Link& link, const char* what, const WaitFunction* waiter, Step&& step);
    template <class Ready>
    Status wait(Ready&& ready, const WaitFor& what, const WaitFunction* waiter) const;
    Status put_then_signal(const npushmem_put_signal& op, Completion completion, const WaitFunction* waiter);
    // `first`: an earlier failure.
    Status finish_quiet(Links pending, Status first, const WaitFunction* waiter);
    [[nodiscard]] Status not_complete(const Links& pending, const Status& waited) const;
    // Both with the lock held.
    void poll_quiets(Links& pending, Status& first);
    Code poll_quiet(Link& link, Status& first);
    Status events();

    RemotePeers& peers_;
    std::mutex lock_;
    std::deque<Link> links_;    // a deque: addresses stay valid
    std::vector<Link*> by_pe_;  // null: unused
    Links outstanding_;
    // Staging of failed or timed-out requests, which the transport may still access until the queues are closed.
    std::vector<std::vector<std::byte>> abandoned_staging_;
    // Results of fetches that complete at once arrive here. The word of a failed fetch stays allocated.
    std::deque<std::uint64_t> fetch_results_;
    std::vector<std::uint64_t*> free_fetch_results_;
    std::atomic<std::uint64_t*> spare_fetch_result_{nullptr};  // released last and not reused yet: reuse needs no lock
    std::uint64_t transports_ = 0;                             // transports of the links, one bit each
};

}  // namespace npushmem
