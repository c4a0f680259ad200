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

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/memory/held_writes.hpp"
#include "core/memory/program_image.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

class StaticData {
public:
    struct Home {
        int descriptor;        // stays open as long as the object lives
        std::uint64_t offset;  // in that file, of the first byte of the image
        // Makes sure of memory for [offset, offset + bytes) of the image.
        std::function<Status(std::uint64_t offset, std::uint64_t bytes)> commit;
    };

    // Other threads may run; see HeldWrites for what they must not do. A failure leaves everything as it was.
    static Result<std::unique_ptr<StaticData>> share(const ProgramImage& image, Home home);
    StaticData(const StaticData&) = delete;
    StaticData& operator=(const StaticData&) = delete;
    // Gives back what has not been given back yet.
    ~StaticData();

    // Ends the watch over other threads' writes. Some time after `share` or `give_back`, so that every write which has
    // met a replaced page has been tried again.
    void settle() { held_.reset(); }
    // Nobody but this process may use the variables any more. After a failure, which tells that there is no memory, the
    // rest is still shared.
    Status give_back();

    // A child of fork has the variables as they were, not its parent's: to be called around fork, in this order. The
    // parent waits for its child's copy; the child's calls are async-signal-safe.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

private:
    StaticData(const ProgramImage& image, Home home) : begin_(image.begin), home_(std::move(home)) {}

    // Room for what is known of a piece. Taken before: between the copy of a page and its replacement nobody may
    // allocate, because the allocator's own variables may be the executable's.
    struct Notes {
        std::vector<std::uint64_t> states;  // of pages, as the kernel tells them
        std::vector<Range> runs;            // of pages that hold anything
    };

    Status share_part(const ProgramImage::Part& part, Notes& notes);
    Status share_piece(const Range& piece, std::uint64_t initialised, Notes& notes);
    void find_runs(const Range& piece, std::uint64_t initialised, Notes& notes) const;
    Status commit(const std::vector<Range>& runs) const;
    // Both: false with errno.
    [[nodiscard]] bool copy_out(const Range& run) const;
    [[nodiscard]] bool replace(const Range& piece, const Notes& notes) const;
    // Replaces a piece by a private copy. Async-signal-safe; false: no memory.
    [[nodiscard]] bool take_back(const Range& piece);
    void hold_writes(const Range& piece, bool hold) const;
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return reinterpret_cast<std::byte*>(begin_ + offset); }

    std::uintptr_t begin_;
    Home home_;
    std::vector<Range> shared_;       // the pieces that are, in order
    std::optional<HeldWrites> held_;  // when there are other threads
    std::mutex fork_lock_;            // from before a fork until after it
    int fork_pipe_[2] = {-1, -1};     // under fork_lock_
};

}  // namespace npushmem
