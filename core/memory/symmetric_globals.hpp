// Makes the executable's global and static variables symmetric: their pages are replaced, at the same addresses and
// with the same contents, by pages of the host's shared segment, which lie in this PE's slice behind everything else.
// Peers then reach them as they reach the heap, by an offset in the slice. Each PE has its own: nothing is shared but
// access.
//
//     executable of this PE   | code | constants | variables |          the same pages
//     slice of this PE        | control | heap | teams | variables |    at two addresses
//
// Pages that nobody has touched stay so. Given back, the variables keep their values in memory of this process alone.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/memory/program_image.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Lets pages be replaced under running threads: while an object of this class lives, a thread that writes to a page of
// the range which is read-only for the moment waits and tries again, instead of getting a signal.
//
// It is the process's handler of SIGSEGV meanwhile; what is not about the range goes to the handler before. A thread
// that blocks this signal cannot be held, and a system call that writes into such a page for another thread fails with
// EFAULT.

class WriteFaultGuard {
public:
    WriteFaultGuard(std::uintptr_t begin, std::uint64_t bytes);
    WriteFaultGuard(const WriteFaultGuard&) = delete;
    WriteFaultGuard& operator=(const WriteFaultGuard&) = delete;
    ~WriteFaultGuard();

    // Has this process any other thread?
    static bool needed();
};

class SymmetricGlobals {
public:
    struct Backing {
        int descriptor;        // stays open as long as the object lives
        std::uint64_t offset;  // in that file, of the first byte of the image
        // Makes sure of memory for [offset, offset + bytes) of the image.
        std::function<Status(std::uint64_t offset, std::uint64_t bytes)> commit;
    };

    // Other threads may run; see WriteFaultGuard for what they must not do. A failure leaves everything as it was.
    static Result<std::unique_ptr<SymmetricGlobals>> share(const ProgramImage& image, Backing backing);
    SymmetricGlobals(const SymmetricGlobals&) = delete;
    SymmetricGlobals& operator=(const SymmetricGlobals&) = delete;
    // Gives back what has not been given back yet.
    ~SymmetricGlobals();

    // Ends the watch over other threads' writes. Some time after `share` or `restore_private`, so that every write
    // which has met a replaced page has been tried again.
    void release_write_guard() { write_guard_.reset(); }
    // Nobody but this process may use the variables any more. After a failure, which tells that there is no memory, the
    // rest is still shared.
    Status restore_private();

    // A child of fork has the variables as they were, not its parent's: to be called around fork, in this order. The
    // parent waits for its child's copy; the child's calls are async-signal-safe.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

private:
    SymmetricGlobals(const ProgramImage& image, Backing backing) : begin_(image.begin), backing_(std::move(backing)) {}

    // Room for what is known of a piece. Taken before: between the copy of a page and its replacement nobody may
    // allocate, because the allocator's own variables may be the executable's.
    struct PageScan {
        std::vector<std::uint64_t> states;  // of pages, as the kernel tells them
        std::vector<Range> runs;            // of pages that hold anything
    };

    Status share_segment(const ProgramImage::LoadSegment& segment, PageScan& scan);
    Status share_piece(const Range& piece, std::uint64_t initialised, PageScan& scan);
    void find_runs(const Range& piece, std::uint64_t initialised, PageScan& scan) const;
    Status commit(const std::vector<Range>& runs) const;
    // Both: false with errno.
    [[nodiscard]] bool copy_out(const Range& run) const;
    [[nodiscard]] bool replace(const Range& piece, const PageScan& scan) const;
    // Replaces a piece by a private copy. Async-signal-safe; false: no memory.
    [[nodiscard]] bool restore_piece(const Range& piece);
    void block_writes(const Range& piece, bool hold) const;
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return reinterpret_cast<std::byte*>(begin_ + offset); }

    std::uintptr_t begin_;
    Backing backing_;
    std::vector<Range> shared_;                   // the pieces that are, in order
    std::optional<WriteFaultGuard> write_guard_;  // when there are other threads
    std::mutex fork_lock_;                        // from before a fork until after it
    int fork_pipe_[2] = {-1, -1};                 // under fork_lock_
};

}  // namespace npushmem
