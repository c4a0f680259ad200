// Memory of this PE that peers may name in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace npushmem::network {

class RegionTable {
public:
    struct Region {
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t wire_number = 0;
    };

    // Numbers are not used again.
    std::uint64_t insert(Region region) {
        regions_.emplace(++last_, region);
        return last_;
    }
    [[nodiscard]] const Region* find(std::uint64_t number) const {
        const auto found = regions_.find(number);
        return found == regions_.end() ? nullptr : &found->second;
    }
    void erase(std::uint64_t number) { regions_.erase(number); }
    [[nodiscard]] const std::unordered_map<std::uint64_t, Region>& all() const { return regions_; }

    // Null unless `bytes` bytes at `offset` lie in the region.
    [[nodiscard]] std::byte* place(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) const {
        const Region* region = find(number);
        if (region == nullptr || offset > region->bytes || bytes > region->bytes - offset) return nullptr;
        return region->base + offset;
    }

private:
    std::unordered_map<std::uint64_t, Region> regions_;
    std::uint64_t last_ = 0;
};

}  // namespace npushmem::network
