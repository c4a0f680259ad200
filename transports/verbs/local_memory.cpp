// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/local_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem::verbs {

std::uint64_t LocalMemory::add(void* base, std::uint64_t bytes) {
    Region region{static_cast<std::byte*>(base), bytes, {}};
    region.chunks.resize((bytes + chunk_bytes_ - 1) / chunk_bytes_);
    regions_.emplace(++last_, std::move(region));
    return last_;
}

void LocalMemory::remove(std::uint64_t number) { regions_.erase(number); }

const LocalMemory::Region* LocalMemory::find(const void* begin, std::uint64_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    for (const auto& [number, region] : regions_) {
        const std::uint64_t offset = at - reinterpret_cast<std::uintptr_t>(region.base);
        if (offset < region.bytes && bytes <= region.bytes - offset) return &region;
    }
    return nullptr;
}

Status LocalMemory::register_chunk(Region& region, std::uint64_t chunk) {
    Owned<ibv_mr>& into = region.chunks[chunk];
    if (into) return {};
    const std::uint64_t offset = chunk * chunk_bytes_;
    auto made = domain_.register_memory(region.base + offset, std::min(chunk_bytes_, region.bytes - offset),
                                        IBV_ACCESS_LOCAL_WRITE | domain_.remote_access());
    if (!made.ok()) return made.status();
    into = std::move(made).value();
    return {};
}

Status LocalMemory::prepare(const void* begin, std::uint64_t bytes) {
    auto& region = const_cast<Region&>(*find(begin, bytes));  // this object owns it
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(begin) - region.base);
    for (std::uint64_t chunk = offset / chunk_bytes_; chunk * chunk_bytes_ < offset + bytes; ++chunk)
        if (Status s = register_chunk(region, chunk); !s.ok()) return s;
    return {};
}

LocalMemory::Piece LocalMemory::piece_at(const void* begin) const {
    const Region& region = *find(begin, 1);
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(begin) - region.base);
    return {region.chunks[offset / chunk_bytes_]->lkey, chunk_bytes_ - offset % chunk_bytes_};
}

Result<std::uint32_t> LocalMemory::rkey(std::uint64_t number, std::uint64_t chunk) {
    const auto found = regions_.find(number);
    if (found == regions_.end() || chunk >= found->second.chunks.size())
        return Status{Code::range, fmt::format("chunk {} of region {} does not exist on this PE", chunk, number)};
    if (Status s = register_chunk(found->second, chunk); !s.ok()) return s;
    return found->second.chunks[chunk]->rkey;
}

}  // namespace npushmem::verbs
