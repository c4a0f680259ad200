// SPDX-License-Identifier: BSD-3-Clause
// What is known about global memory: for each range the last write in program order, whether it has reached the memory,
// and which copies read it since.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/memory/segment_map.hpp"
#include "core/npu/check/processes/shared_arena.hpp"
#include "npushmem/npu/hazard.hpp"

namespace npushmem::npu::check {

// Counts what happens to the memory; 0: not yet.
using Stamp = std::uint64_t;

struct UnorderedWrite {
    Access write;
    std::uintptr_t at = 0;
};

template <template <class> class Allocator>
class BasicGmShadow {
public:
    using Address = std::uintptr_t;
    using Report = std::function<void(Hazard hazard, const Access& other, Address at, const char* detail)>;

    // Copies. A write lands when the command runs, which may be later.
    void copy_read(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void copy_write(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void landed(Address begin, Address end, const Access& access, Stamp stamp);

    // A scalar store into the cache of its core.
    void store(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    // A scalar load. `filled`: when its line was cached; 0 when it was read from memory just now.
    void load(Address begin, Address end, std::uint32_t core, const Clock& clock, Stamp filled,
              const Report& report) const;
    // A whole line is written to memory, with the bytes in `dirty` changed by its core since `filled`.
    void write_back(Address begin, std::uint64_t dirty, const Access& flush, Stamp filled, Stamp stamp,
                    const Report& report);
    // Signals and atomics. `exclusive`: a store, which on hardware writes the whole line.
    void signal(Address begin, Address end, const Access& access, const Clock& clock, bool exclusive,
                const Report& report);

    // A write of another core than `core` to the line at `address`, except to the `bytes` there, that is not complete
    // and in memory for the holder of `clock`.
    using Unordered = UnorderedWrite;
    [[nodiscard]] Unordered unordered_in_line(Address address, std::size_t bytes, std::uint32_t core,
                                              const Clock& clock) const;
    // Of a core's stores to a line that are still in its cache, one; none: there is none.
    [[nodiscard]] Access last_store(Address line, std::uint32_t core) const;
    // Whether a write that is known here reached any of these bytes after `stamp`, or is about to.
    [[nodiscard]] bool written_since(Address begin, Address end, Stamp stamp) const;
    // The copy of another core that wrote there last, if it has landed before `filled` (0: at all) and nothing orders
    // it before the holder of `clock`.
    [[nodiscard]] Access unordered_copy(Address address, std::uint32_t core, const Clock& clock, Stamp filled) const;
    // None: no write is known there.
    [[nodiscard]] Access writer_of(Address address) const;
    void clear();

private:
    struct Bytes {
        Access write;
        Stamp landed = 0;
        bool dirty = false;         // in the cache of the writer
        std::uint32_t flushed = 0;  // the writer's sequence number when it left the cache
        bool signal = false;
        std::vector<Access, Allocator<Access>> reads;  // by copies, since the write
        std::vector<Access, Allocator<Access>>
            adds;  // by copies that add, before the write, which adds, too, and does not order them
        // The last write that was no addition and no signal, if the write is one: additions and signals do not order
        // it.
        Access plain{};
    };

    // What becomes the plain write when an addition or a signal follows.
    [[nodiscard]] static Access plain_write(const Bytes& bytes);
    void check_write(const Bytes& bytes, Address at, const Access& access, const Clock& clock, bool signal,
                     const Report& report) const;
    // A scalar store that, as far as the holder of `clock` can rely on, is still in the cache of its core.
    [[nodiscard]] static bool still_cached(const Bytes& bytes, const Clock& clock);
    static void check_overwrite(const Access& write, Address at, const Access& access, const Clock& clock,
                                const Report& report);
    static void check_copied(const Access& write, Address at, const Access& access, const Clock& clock,
                             const Report& report);
    static void check_loaded(const Access& write, Address at, std::uint32_t core, const Clock& clock,
                             const Report& report);
    void assign_add(Address begin, Address end, const Access& access, const Clock& clock);
    // H9: bytes beside these, in the same line, that another core stores through its cache.
    void check_neighbours(Address begin, Address end, const Access& access, const Clock& clock,
                          const Report& report) const;
    void check_line_owner(Address word, const Access& access, const Clock& clock, const Report& report);

    SegmentMap<Bytes, Allocator> bytes_;
    struct LineOwner {
        Address word;
        Access access;
    };
    std::unordered_map<Address, LineOwner, std::hash<Address>, std::equal_to<>,
                       Allocator<std::pair<const Address, LineOwner>>>
        signal_lines_;
};

// Of the PEs whose cores one process checks.
using GmShadow = BasicGmShadow<std::allocator>;
// Of the PEs of a job, in the memory that their processes share.
using SharedGmShadow = BasicGmShadow<SharedAllocator>;

}  // namespace npushmem::npu::check
