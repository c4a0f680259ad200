// SPDX-License-Identifier: BSD-3-Clause
// The scalar accesses of one core to global memory, through the cache that S has on hardware.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/npu/check/cores/pipes.hpp"

namespace npushmem::npu::check {

// The value of 1, 2, 4 or 8 bytes.
std::uint64_t value_of(const void* bytes, std::size_t count);
// One relaxed machine access: peers in other processes may access the same word.
void read_memory(const void* from, void* to, std::size_t bytes);
void write_memory(void* to, const void* from, std::size_t bytes);

struct CacheLine {
    std::array<std::byte, 64> bytes;
    std::uint64_t dirty = 0;  // bit i: byte i was stored since the line was filled
    Stamp filled = 0;
    std::uint64_t acquires = 0;  // of its core, when it was filled; see ExternalEffects
    // A write of another core to other bytes of the line that nothing orders before the line was filled.
    Access neighbour;
    std::uintptr_t neighbour_at = 0;
};

// The private write-back cache of one core: lines of 64 bytes without coherence. It never evicts a line, so
// that findings do not depend on which lines happen to stay.
class ScalarCache {
public:
    using Address = std::uintptr_t;

    [[nodiscard]] CacheLine* find(Address address) {
        const auto found = lines_.find(address / 64);
        return found == lines_.end() ? nullptr : &found->second;
    }
    // Read from memory.
    CacheLine& fill(Address address, Stamp now);
    // Writes the line back if it is dirty, whole, and forgets it. Calls `flush(line begin, const CacheLine&)` before.
    // Returns false when the line was not cached.
    template <class Flush>
    bool drop(Address address, Flush&& flush) {
        const auto found = lines_.find(address / 64);
        if (found == lines_.end()) return false;
        write_back(found->first * 64, found->second, flush);
        lines_.erase(found);
        return true;
    }
    // Calls use(line begin).
    template <class Use>
    void for_each_dirty(Use&& use) const {
        for (const auto& [line, held] : lines_)
            if (held.dirty != 0) use(line * 64);
    }
    template <class Flush>
    void drop_all(Flush&& flush) {
        for (const auto& [line, held] : lines_) write_back(line * 64, held, flush);
        lines_.clear();
    }

private:
    static void to_memory(Address begin, const CacheLine& line);
    template <class Flush>
    static void write_back(Address begin, const CacheLine& line, Flush&& flush) {
        if (line.dirty == 0) return;
        flush(begin, line);
        to_memory(begin, line);
    }

    std::map<Address, CacheLine> lines_;
};

// Finds what PEs of other processes wrote into lines that this core cached. Those PEs leave no record here: what they
// do is found by comparing memory.
class ExternalEffects {
public:
    using Address = std::uintptr_t;

    // This core has waited for another one: lines that it cached before may be stale.
    void acquired() { ++acquires_; }
    void filled(CacheLine& line) const { line.acquires = acquires_; }
    // H7: whether memory has other bytes than the line, and this core has waited since it cached them.
    [[nodiscard]] bool is_stale(Address at, std::size_t bytes, const CacheLine& line) const;
    // H9: the first byte that writing the whole line back would undo; 0: none.
    [[nodiscard]] static Address lost(Address line_begin, const CacheLine& line);

private:
    std::uint64_t acquires_ = 0;
};

class ScalarMemory {
public:
    using Address = std::uintptr_t;

    ScalarMemory(const CheckedCore& core, Domain& domain, PipeClocks& clocks)
        : core_(core), domain_(domain), clocks_(clocks) {}

    // Returns true when the line was cached before.
    bool load(const Access& access, const void* address, void* value, std::size_t bytes);
    // Returns true when the cached line has other bytes than before.
    bool store(const Access& access, void* address, const void* value, std::size_t bytes);
    // For a wait loop that reads a cached line: if memory has other bytes, reports that, and reads the line again so
    // that the kernel continues. Returns false if memory has the same bytes.
    bool refresh_stale_poll(const Access& access, Address at, std::size_t bytes);
    // An access past the cache: writes the line back and drops it.
    void bypass(Address address, const SourceLocation& where);
    // Whether a dcci would write stores of this core to memory.
    [[nodiscard]] bool writes_back(const void* address, std::size_t bytes) const;
    void dcci(const void* address, std::size_t bytes, const SourceLocation& where);
    // Writes all lines back and drops them.
    void clean(const SourceLocation& where);
    // H8 towards PEs of other processes: `signal` leaves while stores to its target are in the cache.
    void record_unflushed(int target, const Access& signal);
    void acquired() { external_.acquired(); }

private:
    // `own_bytes`: of the access that needs the line.
    CacheLine& fill(Address address, std::size_t own_bytes);
    // `filled`: when the line was cached; 0: by this load, or there is no line.
    void check_load(const Access& access, void* value, std::size_t bytes, const CacheLine* line, Stamp filled,
                    const void* address);
    // H8: the core has polled a word of a copy, and loads other lines of it, which may arrive later. Loads at the
    // source line of the poll are polls, too.
    bool check_polled_copy(const Access& access, Address at, Stamp filled);
    void store_uncached(Address address, const void* value, std::size_t bytes, const Access& access);
    // A line is read that no dcci refreshed, and nothing orders the last write of the word before that: the line may
    // have the word as it was before. Returns true if it has.
    bool read_earlier(Address at, CacheLine& line);
    void check_write_back(Address begin, const CacheLine& line, const Access& access);
    void write_back(Address begin, const CacheLine& line, const SourceLocation& where);
    bool drop_line(Address address, const SourceLocation& where);

    const CheckedCore& core_;
    Domain& domain_;
    PipeClocks& clocks_;
    ScalarCache cache_;
    std::set<Address> untouched_;  // lines not used since their last dcci
    ExternalEffects external_;
    // The unordered copies of others of which a load saw something: where the load was, and the lines that were polled.
    struct PolledCopy {
        SourceLocation where;
        std::set<Address> lines;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, PolledCopy> polled_;  // by agent and sequence of the copy
    std::unordered_map<Address, std::uint32_t> earlier_;  // words that were read as before the release of that number
};

// The atomics of one core, which pass the cache. Between begin() and end() it holds the lock of the records, if there
// are any, for words that are mapped here.
class ScalarAtomics {
public:
    ScalarAtomics(const CheckedCore& core, Domain& domain, PipeClocks& clocks)
        : core_(core), domain_(domain), clocks_(clocks) {}

    void begin(const Access& access, std::uintptr_t address);
    void end(const AtomicResult& result);

private:
    void record(const AtomicResult& result);

    const CheckedCore& core_;
    Domain& domain_;
    PipeClocks& clocks_;
    Access access_;
    std::optional<JobLock> records_;
};

}  // namespace npushmem::npu::check
