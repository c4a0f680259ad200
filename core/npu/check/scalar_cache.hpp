// The private write-back cache of one core: lines of 64 bytes that nobody keeps coherent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "core/npu/check/gm_shadow.hpp"

namespace npushmem::npu::check {

struct CacheLine {
    std::array<std::byte, 64> bytes;
    std::uint64_t dirty = 0;  // bit i: byte i was stored since the line was filled
    Stamp filled = 0;
    std::uint64_t acquires = 0;  // of its core, when it was filled; see Outside
    // A write of another core to other bytes of the line that nothing orders before the line was filled.
    Access neighbour;
    std::uintptr_t neighbour_at = 0;
};

// Never evicts: what would be found only when a line happens to stay is found always.
class ScalarCache {
public:
    using Address = std::uintptr_t;

    [[nodiscard]] CacheLine* find(Address address) {
        const auto found = lines_.find(address / 64);
        return found == lines_.end() ? nullptr : &found->second;
    }
    // Read from memory.
    CacheLine& fill(Address address, Stamp now);
    // Writes the line back if it is dirty, whole, and forgets it. `flush(line begin, const CacheLine&)` is told before.
    template <class Flush>
    bool drop(Address address, Flush&& flush) {
        const auto found = lines_.find(address / 64);
        if (found == lines_.end()) return false;
        write_back(found->first * 64, found->second, flush);
        lines_.erase(found);
        return true;
    }
    // look(line begin).
    template <class Look>
    void for_each_dirty(Look&& look) const {
        for (const auto& [line, held] : lines_)
            if (held.dirty != 0) look(line * 64);
    }
    template <class Flush>
    bool drop_all(Flush&& flush) {
        const bool any = !lines_.empty();
        for (const auto& [line, held] : lines_) write_back(line * 64, held, flush);
        lines_.clear();
        return any;
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

}  // namespace npushmem::npu::check
