// SPDX-License-Identifier: BSD-3-Clause
// Makes the executable's global and static variables symmetric. Pages of the host's shared segment, at the end of this
// PE's slice, replace the variables' pages at the same addresses with the same contents. Peers then access them like
// the heap, by an offset in the slice. Each PE keeps its own variables; only access is shared.
//
//     executable of this PE   | code | constants | variables |          the same pages
//     slice of this PE        | control | heap | teams | variables |    at two addresses
//
// Sharing touches no untouched page, and neither does the restoration of more than 256 KiB. After restoration the
// variables keep their values, in memory of this process alone.
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

// Allows pages to be replaced while threads run: a thread that writes to a page of the range that is read-only at that
// moment waits and retries, instead of receiving a signal. While an object lives it is the process's SIGSEGV handler;
// faults outside the range go to the previous handler. Limits: a thread that blocks SIGSEGV cannot be held, and a
// system call that writes into such a page for another thread fails with EFAULT.
class WriteFaultGuard {
public:
    WriteFaultGuard(std::uintptr_t begin, std::uint64_t bytes);
    WriteFaultGuard(const WriteFaultGuard&) = delete;
    WriteFaultGuard& operator=(const WriteFaultGuard&) = delete;
    ~WriteFaultGuard();

    // Returns whether this process has other threads.
    static bool needed();
};

class SymmetricGlobals {
public:
    struct Backing {
        int descriptor;        // stays open while the object lives
        std::uint64_t offset;  // offset in that file of the first byte of the image
        // Provides memory for [offset, offset + bytes) of the image.
        std::function<Status(std::uint64_t offset, std::uint64_t bytes)> commit;
    };

    // Other threads may run, with the limits of WriteFaultGuard. A failure changes nothing.
    static Result<std::unique_ptr<SymmetricGlobals>> share(const ProgramImage& image, Backing backing);
    SymmetricGlobals(const SymmetricGlobals&) = delete;
    SymmetricGlobals& operator=(const SymmetricGlobals&) = delete;
    // Restores all variables that are still shared.
    ~SymmetricGlobals();

    // Stops handling other threads' write faults. Call it some time after `share` or `restore_private`, so that every
    // write that faulted on a replaced page has been retried.
    void release_write_guard() { write_guard_.reset(); }
    // From now on only this process may use the variables. On a failure (Code::memory) the rest stays shared.
    Status restore_private();

    // Give a child of fork its own copy of the variables instead of its parent's pages. Call them around fork, in this
    // order. The parent waits for its child's copy; the child's calls are async-signal-safe.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

private:
    SymmetricGlobals(const ProgramImage& image, Backing backing) : begin_(image.begin), backing_(std::move(backing)) {}

    // Buffers for the scan of a piece, allocated in advance. Nothing may allocate between the copy of a page and its
    // replacement, because the allocator's own variables may be the executable's.
    struct PageScan {
        std::vector<std::uint64_t> states;  // of pages, as the kernel reports them
        std::vector<Range> runs;            // of pages with contents
    };

    Status share_segment(const ProgramImage::LoadSegment& segment, PageScan& scan);
    Status share_piece(const Range& piece, std::uint64_t initialised, PageScan& scan);
    void find_runs(const Range& piece, std::uint64_t initialised, PageScan& scan) const;
    Status commit(const std::vector<Range>& runs) const;
    // Both return false and set errno on failure.
    [[nodiscard]] bool copy_out(const Range& run) const;
    [[nodiscard]] bool replace(const Range& piece, const PageScan& scan) const;
    // Replaces a piece by a private copy. Async-signal-safe. False: no memory.
    [[nodiscard]] bool restore_piece(const Range& piece);
    void block_writes(const Range& piece, bool hold) const;
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return reinterpret_cast<std::byte*>(begin_ + offset); }

    std::uintptr_t begin_;
    Backing backing_;
    std::vector<Range> shared_;                   // the shared pieces, in order
    std::optional<WriteFaultGuard> write_guard_;  // set when there are other threads
    std::mutex fork_lock_;                        // from before a fork until after it
    int fork_pipe_[2] = {-1, -1};                 // under fork_lock_
};

}  // namespace npushmem
