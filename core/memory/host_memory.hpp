// SPDX-License-Identifier: BSD-3-Clause
// The symmetric memory of all PEs of one host: one shared segment with one slice per PE, so that the address of a
// peer's copy of an object can be computed:
//
//     | header, publications | slice of local PE 0 | slice of local PE 1 | ... |
//                            ^ control block | symmetric objects ... | teams | the executable's variables
//                            (SymmetricGlobals)
//
//     address on local PE k of the object at `offset` = slices() + k * stride() + offset
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/host_facts.hpp"
#include "core/base/shared_segment.hpp"
#include "core/memory/control_block.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// The file behind a PE's part of a registered buffer (RegisteredBuffers), from `offset` on. Descriptor -1: none, the
// buffer is in the PE's slice. `call` is the number of the registration: of a PE that has died, an older one remains.
struct BufferFile {
    SegmentHandle file;
    std::uint64_t offset = 0;
    std::uint64_t call = 0;
};

// Where the slices are in a segment of another job, by its header.
struct HostMemoryLayout {
    int local_pes = 0;
    std::uint64_t stride = 0;

    // Returns the offset of a PE's control block in the segment.
    [[nodiscard]] std::uint64_t control_offset(int local_pe) const;
};

// Reads the header of a file that may be any. Returns nothing if it is no host memory; fails if it is one of another
// version, or its sizes cannot be true.
Result<std::optional<HostMemoryLayout>> read_host_memory_layout(int descriptor);

class HostMemory {
public:
    // For the host's first PE. `slice_bytes` is the size of a PE's whole slice, including the control block.
    static Result<HostMemory> create(std::uint64_t slice_bytes, int local_pes, const std::string& folder);
    // For the host's other PEs, with the first one's segment. `handle`: of that segment, for messages.
    static Result<HostMemory> join(Result<SharedSegment> attached, const SegmentHandle& handle,
                                   std::uint64_t slice_bytes, int local_pes);

    [[nodiscard]] SegmentHandle handle() const { return segment_.handle(); }
    [[nodiscard]] std::byte* slices() const { return segment_.base() + header_bytes; }
    [[nodiscard]] std::uint64_t stride() const { return stride_; }
    [[nodiscard]] std::byte* slice(int local_pe) const {
        return slices() + static_cast<std::uint64_t>(local_pe) * stride_;
    }

    // The ranges are relative to a slice; see SharedSegment for the guarantees.
    Status commit(int local_pe, std::uint64_t offset, std::uint64_t bytes);
    void decommit(int local_pe, std::uint64_t offset, std::uint64_t bytes);
    void retain_pages() { segment_.retain_pages(); }
    void use_huge_pages() { segment_.use_huge_pages(); }

    // Describes a slice to the transports, which make it accessible.
    [[nodiscard]] npushmem_memory describe_slice(int local_pe, std::uint64_t slice_bytes) const;

    // What PEs publish for all PEs of the host, in the free space of the header, for as long as the memory exists: so
    // not every PE keeps its own. One PE publishes at a time, and each of these at most once; the others may read it
    // after a barrier, and read nothing if it is not published. Fails with Code::range when the space does not suffice.
    enum class Publication { processes, nics, endpoints, endpoint_rows };
    Status publish(Publication what, std::span<const std::byte> data);
    // The same in two steps: one PE reserves zeroed room, and after a barrier all PEs of the host may write into it.
    // Each PE writes a part of its own. Empty if nothing is reserved.
    Status reserve(Publication what, std::uint64_t bytes);
    [[nodiscard]] std::span<std::byte> reserved(Publication what) const;
    [[nodiscard]] std::span<const std::byte> published(Publication what) const;
    // Returns the memory to the system. One PE calls this when no PE reads or writes the memory any more.
    void discard(Publication what);

    // Shows PEs that do not see this PE's process that it lives, from now until it ends; and whether such a PE does.
    Status show_life(int local_pe) { return segment_.hold(local_pe); }
    // For a child of fork, which is not the PE.
    void hide_life_in_child() { segment_.release_in_child(); }
    [[nodiscard]] bool shows_life(int local_pe) const { return segment_.is_held(local_pe); }
    [[nodiscard]] int descriptor() const { return segment_.descriptor(); }

    // Where a PE's part of the buffer that is being registered is, for the other PEs of the host. They may read it
    // after a barrier, until the next one.
    Status publish_buffer(int local_pe, const BufferFile& file);
    [[nodiscard]] BufferFile published_buffer(int local_pe) const;

    // Maps pages of a slice, a second time or again, at `at` in this process.
    Status map_slice(int local_pe, std::uint64_t offset, std::uint64_t bytes, void* at) const {
        return map_over(at, bytes, segment_.descriptor(), file_offset(local_pe) + offset);
    }
    // Returns the offset of a slice in the segment's file.
    [[nodiscard]] std::uint64_t file_offset(int local_pe) const {
        return header_bytes + static_cast<std::uint64_t>(local_pe) * stride_;
    }

    // Records that a PE of this host has finalized after this barrier; and returns whether one has after the first
    // `barriers` ones or fewer. The header has the lowest number: reading the state in every slice would cost each PE a
    // page of page tables per slice, also at the end of the job, when all PEs finalize after the same barrier.
    void record_departure(std::uint64_t last_barrier);
    [[nodiscard]] bool has_departures(std::uint64_t barriers) const {
        return first_departure().load(std::memory_order_acquire) <= barriers;
    }

    // The number of threads of the host's PEs that sleep until a PE stores what they await, see AwaitedBytes.
    [[nodiscard]] std::atomic<std::uint32_t>& sleepers() const { return header().sleepers; }

    // Slices begin at multiples of this: of huge pages, and of the largest alignment of an object.
    static std::uint64_t slice_alignment(std::uint64_t slice_bytes);
    static constexpr std::uint64_t header_bytes = SharedSegment::alignment;

private:
    friend Result<std::optional<HostMemoryLayout>> read_host_memory_layout(int descriptor);

    struct Range {
        std::uint64_t offset;
        std::uint64_t bytes;
    };
    struct Header {
        std::uint64_t magic;
        std::uint32_t version;
        std::uint32_t local_pes;
        std::uint64_t slice_bytes;
        std::uint64_t stride;
        std::uint64_t first_departure;   // the lowest last barrier of a PE that has finalized
        std::uint64_t commit_allowance;  // see SharedSegment::share_allowance
        Range published[4];              // by Publication, one behind the other
        std::uint64_t published_end;
        // Alone in its line: every p, small put, signal and atomic reads it.
        alignas(64) std::atomic<std::uint32_t> sleepers;
    };
    static constexpr std::uint64_t buffers_offset = header_bytes / 2;

    HostMemory(SharedSegment segment, std::uint64_t stride) : segment_(std::move(segment)), stride_(stride) {}
    [[nodiscard]] static std::uint64_t buffer_offset(int local_pe) {
        return buffers_offset + static_cast<std::uint64_t>(local_pe) * sizeof(BufferFile);
    }
    [[nodiscard]] std::atomic_ref<std::uint64_t> first_departure() const {
        return std::atomic_ref<std::uint64_t>(header().first_departure);
    }
    [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(segment_.base()); }

    SharedSegment segment_;
    std::uint64_t stride_;
};

}  // namespace npushmem
