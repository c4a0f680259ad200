// Memory shared between the processes of a host, without a name in any file system: it is gone when the last process
// that maps it is gone, however that process ended.
//
// The address space of a segment is reserved whole and costs nothing; memory is committed in ranges, and commit is the
// only place that can find memory exhausted. A page that was never committed must not be touched.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// How another process of the same user and process namespace finds the segment; plain bytes, for the bootstrap.
struct SegmentHandle {
    std::int32_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
};

class SharedSegment {
public:
    // Of base(), in every process; sizes are multiples of a page.
    static constexpr std::uint64_t alignment = 64ULL << 20;

    // Makes and maps a segment. `folder` empty: anonymous memory; otherwise an unnamed file in that folder.
    static Result<SharedSegment> create(std::uint64_t bytes, const std::string& folder);
    // Maps the segment that `handle` names; fails when it is a different one by now.
    static Result<SharedSegment> attach(const SegmentHandle& handle);

    SharedSegment() = default;
    SharedSegment(SharedSegment&& other) noexcept;
    SharedSegment& operator=(SharedSegment&& other) noexcept;
    ~SharedSegment();

    [[nodiscard]] SegmentHandle handle() const;
    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] int descriptor() const { return descriptor_; }

    // Makes [offset, offset + bytes) usable, filled with zeros where it was not committed before. Serialised between
    // the processes of the host, so that the check against the available memory holds. On failure nothing stays
    // committed that was not; the message has the numbers. Code::timeout when other processes keep at it for longer
    // than `lock_timeout`, as a stopped one does.
    Status commit(std::uint64_t offset, std::uint64_t bytes,
                  std::chrono::milliseconds lock_timeout = std::chrono::minutes(1));
    // From now on a commit that fails half-way keeps what it has got: a NIC may know its pages already, because it
    // registers memory in pieces of its own size.
    void retain_pages() { retains_pages_ = true; }
    // Gives the memory back; the range reads as zeros after the next commit.
    void decommit(std::uint64_t offset, std::uint64_t bytes);

private:
    SharedSegment(int descriptor, std::uint64_t bytes, std::string where)
        : descriptor_(descriptor), bytes_(bytes), where_(std::move(where)) {}

    Status map();
    Status commit_piece(std::uint64_t offset, std::uint64_t bytes, std::uint64_t wanted);

    int descriptor_ = -1;
    std::uint64_t bytes_ = 0;
    std::byte* base_ = nullptr;
    std::string where_;  // for messages: what backs the segment
    bool retains_pages_ = false;
};

}  // namespace npushmem
