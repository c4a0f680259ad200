// SPDX-License-Identifier: BSD-3-Clause
// Memory shared between the processes of a host, without a name in a file system: it disappears with the last process
// that maps it, however that process ends.
//
// A segment reserves its whole address space, at no cost. Memory is committed in ranges, and only commit can find
// memory exhausted. A page that was never committed must not be accessed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/host_facts.hpp"
#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Identifies the segment to other processes of the same user and PID namespace; those of other namespaces need its
// descriptor too. Plain bytes, for the bootstrap.
struct SegmentHandle {
    std::int32_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] bool given() const { return process != 0; }
};

// Opens the file that `handle` names, of any process of the host, for reading and writing. Fails when the handle now
// refers to another file or to a shorter one.
Result<FileDescriptor> open_shared_file(const SegmentHandle& handle);

// Replaces whole pages of this process at `at` by pages of a file, shared. A failure changes nothing.
Status map_over(void* at, std::uint64_t bytes, int descriptor, std::uint64_t offset);

// The size of a commit that needs no check if it has an allowance: the state of a PE, but no large object.
inline constexpr std::uint64_t max_unchecked_commit = 1ULL << 20;

// Returns the allowance after a check that leaves `left` bytes available. `reserve`, a part of them, is kept for the
// system. Where much is left, other programs will not take it soon.
constexpr std::uint64_t commit_allowance(std::uint64_t left, std::uint64_t reserve) {
    constexpr std::uint64_t much = 16;  // times the reserve
    return left >= much * reserve ? reserve : reserve / 4;
}

class SharedSegment {
public:
    // The alignment of base() in every process. Sizes are multiples of a page.
    static constexpr std::uint64_t alignment = 64ULL << 20;

    // Creates and maps a segment. `folder` empty: anonymous memory; otherwise an unnamed file in that folder.
    static Result<SharedSegment> create(std::uint64_t bytes, const std::string& folder);
    // Maps the segment of `handle`; fails when the handle now refers to another file. `received`: its descriptor, from
    // a process of another PID namespace.
    static Result<SharedSegment> attach(const SegmentHandle& handle);
    static Result<SharedSegment> attach(const SegmentHandle& handle, const FileDescriptor& received);

    SharedSegment() = default;
    SharedSegment(SharedSegment&& other) noexcept;
    SharedSegment& operator=(SharedSegment&& other) noexcept;
    ~SharedSegment();

    [[nodiscard]] SegmentHandle handle() const;
    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] int descriptor() const { return descriptor_.get(); }

    // Makes [offset, offset + bytes) usable. Bytes that were not committed are zero. The processes of a host commit one
    // after another, so that the check against the available memory holds. A failure leaves nothing newly committed;
    // its message has the numbers. Fails with Code::timeout when another process holds the lock and has committed
    // nothing for `lock_timeout`, for example because it is stopped.
    //
    // With an allowance (see share_allowance), a check of the available memory also allows any process small commits
    // without lock and check, up to commit_allowance() together. A check that fails ends the allowance.
    Status commit(std::uint64_t offset, std::uint64_t bytes,
                  std::chrono::milliseconds lock_timeout = std::chrono::minutes(1));
    // From now on a commit makes each whole huge page of its range a transparent one, also where the machine's mode for
    // shared memory is `never`, and zeroes it, so that the first access finds it ready. It stops at the first piece of
    // the range for which Linux (6.1 or later) finds no huge pages. No effect where pages do not have 4 KiB.
    void use_huge_pages() { uses_huge_pages_ = page_bytes() == 4096; }
    // Returns how many bytes this process has committed so, in pieces that have huge pages throughout.
    [[nodiscard]] std::uint64_t huge_bytes() const { return huge_bytes_; }
    // Uses a word of zeros that all processes of the segment share for the allowance, in bytes.
    void share_allowance(std::uint64_t& word) { allowance_ = &word; }
    // Takes a lock that the process holds as long as it lives and has the segment open. `slot`: any number.
    Status hold(int slot);
    // For a child of fork, which shares the locks of its parent: gives them up, so that they are the parent's alone.
    void release_in_child() { holder_.reset(); }
    // Returns whether another process holds that lock. Costs one system call.
    [[nodiscard]] bool is_held(int slot) const;

    // From now on a commit that fails half-way keeps the pages it has committed: a NIC may already have registered
    // them, because it registers memory in pieces of its own size.
    void retain_pages() { retains_pages_ = true; }
    // Returns the memory to the system. The range reads as zeros after the next commit.
    void decommit(std::uint64_t offset, std::uint64_t bytes);

private:
    SharedSegment(FileDescriptor descriptor, std::uint64_t bytes, std::string where)
        : descriptor_(std::move(descriptor)), bytes_(bytes), where_(std::move(where)) {}

    static Result<SharedSegment> attach_file(const SegmentHandle& handle, const std::string& path);
    Status map();
    Status commit_piece(std::uint64_t offset, std::uint64_t bytes, std::uint64_t wanted, bool& huge);
    bool commit_huge_pages(std::uint64_t offset, std::uint64_t bytes);
    bool take_allowance(std::uint64_t bytes);

    FileDescriptor descriptor_;
    FileDescriptor holder_;  // the file opened again, with the locks of `hold`; invalid: there are none
    std::uint64_t bytes_ = 0;
    std::byte* base_ = nullptr;
    std::string where_;  // for messages: the backing store
    bool retains_pages_ = false;
    bool uses_huge_pages_ = false;
    std::uint64_t huge_bytes_ = 0;
    std::uint64_t* allowance_ = nullptr;  // in the segment
};

}  // namespace npushmem
