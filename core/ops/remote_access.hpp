// One context's operations on PEs whose memory the CPU does not see: through a queue of its own for each PE, made when
// the PE is first used through the context. So what is waited for here is this context's, and of a PE, this PE's.
// Offsets count from the beginning of a slice.
//
// Any thread: one lock around every call on the queues, because a queue takes one caller at a time; nobody waits while
// holding it, and other contexts have theirs.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/blocks.hpp"
#include "core/ops/remote_peers.hpp"

namespace npushmem {

class RemoteAccess {
public:
    enum class Completion { local, deferred };  // return when local memory may be used again, or leave that to quiet

    // How a caller waits that is not a thread of its own: until `ready()`, or why not. The default (null) waits as the
    // peers do.
    using WaitFunction = std::function<Status(const std::function<bool()>& ready, const WaitFor& what)>;

    // `peers` outlives this.
    explicit RemoteAccess(RemotePeers& peers) : peers_(peers) {}
    RemoteAccess(const RemoteAccess&) = delete;
    RemoteAccess& operator=(const RemoteAccess&) = delete;
    // Closes the queues; what is still outstanding is given up.
    ~RemoteAccess();

    Status put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    Status get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion,
               const WaitFunction* waiter = nullptr);
    // Many blocks by one call, in as few requests as may be: blocks that lie together at the PE are gathered here
    // first, and what lies between blocks that are not far apart is read as well and left out. Returns when local
    // memory may be used again. On failure some may have been moved.
    Status put_blocks(int pe, const StridedBlocks& blocks, const void* source);
    Status get_blocks(int pe, const StridedBlocks& blocks, void* dest);
    // Fills in op.remote; a fetching operation that completes `deferred` writes *op.result before quiet returns. One
    // that completes at once writes it only when it succeeds: a caller that gave up waiting may have left.
    Status atomic(npushmem_atomic op, Completion completion, const WaitFunction* waiter = nullptr);
    Status put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                      std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation, Completion completion,
                      const WaitFunction* waiter = nullptr);
    Status fence(const WaitFunction* waiter = nullptr);
    // Of what was posted to this PE.
    Status fence(int pe, const WaitFunction* waiter);
    Status quiet(const WaitFunction* waiter = nullptr);
    // Of what was posted to these PEs. One that has not been used is complete.
    Status quiet(std::span<const int> pes, const WaitFunction* waiter = nullptr);
    // As that of the peers.
    Status progress() { return peers_.progress(); }

private:
    // Returns `done`; keeps what a failed one may still use.
    Status retain_staging(Status done, std::vector<std::byte> staging);
    struct Link : RemotePeers::Link {
        bool outstanding = false;  // something was posted since its last quiet; then it is in outstanding_
        int awaited = 0;           // operations whose callers wait for their own tokens
    };
    using Links = std::vector<Link*>;

    // With the lock held: null when the PE has not been used yet.
    [[nodiscard]] Link* find_link(int pe) const {
        return static_cast<std::size_t>(pe) < by_pe_.size() ? by_pe_[static_cast<std::size_t>(pe)] : nullptr;
    }
    Result<Link*> link(int pe);
    Links outstanding();
    void mark_posted(Link& link);
    Transport& transport_of(const Link& link) const { return *peers_.named(link.transport).transport; }

    // `post_once`, counting its token if it gave one.
    template <class Post>
    Code post_counted(Link& link, const std::uint64_t& token, Post&& post_once);
    // With the lock held.
    Code test(Link& link, std::uint64_t token);
    // Until the operation is over, or the caller gives up waiting for it.
    Status await(Link& link, const char* what, const WaitFunction* waiter, std::uint64_t token);
    // Calls `post_once(link, token)` until the transport has taken the operation, and waits for it if it is to be
    // complete. What a known PE takes at once, as most do, costs one turn of the lock.
    template <class Post>
    Status post(int pe, const char* what, Completion completion, const WaitFunction* waiter, Post&& post_once);
    Status put_or_get(Code (Transport::*how)(std::uint64_t, const npushmem_rma&, std::uint64_t*), const char* what,
                      npushmem_rma op, Completion completion, const WaitFunction* waiter);
    // With what lies between them.
    Status get_with_gaps(int pe, const StridedBlocks& blocks, std::byte* to);
    // With the lock held.
    std::uint64_t* acquire_fetch_result();
    // Without it.
    void release_fetch_result(std::uint64_t* word);
    template <class Post>
    Status post_each(Link& link, const char* what, std::uint64_t count, Post&& post_once);
    template <class Step>
    Status repeat(const Link& link, const char* what, const WaitFunction* waiter, Step&& step);
    template <class Ready>
    Status wait(Ready&& ready, const WaitFor& what, const WaitFunction* waiter) const;
    Status put_then_signal(const npushmem_put_signal& op, Completion completion, const WaitFunction* waiter);
    // `first`: what has failed already.
    Status finish_quiet(Links pending, Status first, const WaitFunction* waiter);
    [[nodiscard]] Status not_complete(const Links& pending, const Status& waited) const;
    // With the lock held, as the next.
    void poll_quiets(Links& pending, Status& first);
    Code poll_quiet(Link& link, Status& first);
    Status events();

    RemotePeers& peers_;
    std::mutex lock_;
    std::deque<Link> links_;    // they stay where they are
    std::vector<Link*> by_pe_;  // null: not used yet
    Links outstanding_;
    // Staging of requests that failed, or were waited for in vain: the transport may still touch it. Until the queues
    // are closed.
    std::vector<std::vector<std::byte>> abandoned_staging_;
    // What is fetched to be returned at once arrives in one of these; one of a fetch that failed stays taken.
    std::deque<std::uint64_t> fetch_results_;
    std::vector<std::uint64_t*> free_fetch_results_;
    std::atomic<std::uint64_t*> spare_fetch_result_{nullptr};  // given back last, if nobody did since: costs no lock
    std::uint64_t transports_ = 0;                             // of the links, one bit each
};

}  // namespace npushmem
