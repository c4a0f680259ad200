// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team.hpp"

namespace npushmem {

namespace {

TeamBarrier::Offsets barrier_offsets(const TeamLayout& layout, bool is_world) {
    if (is_world) return {layout.barrier_state(), offsetof(ControlBlock, entered), offsetof(ControlBlock, counts)};
    return {layout.barrier_state(), layout.entered(), layout.counts()};
}

std::atomic<std::uint64_t>* published_calls(const TeamResources& resources, bool is_world) {
    return is_world ? &reinterpret_cast<ControlBlock*>(resources.own_slice)->progress.world_calls : nullptr;
}

}  // namespace

Team::Team(const TeamResources& resources, Members members, const TeamLayout& layout, bool all_mapped, std::string name,
           bool is_world)
    : resources_(resources),
      memory_(resources, std::move(members), all_mapped),
      layout_(layout),
      name_(std::move(name)),
      pes_(all_mapped ? std::vector<int>{} : listed_unless_all(memory_.members().range(), resources.npes)),
      calls_(resources.waiter, name_, published_calls(resources, is_world)),
      barrier_(resources, memory_, barrier_offsets(layout, is_world), calls_.waiter(), name_,
               is_world ? &resources.layout : nullptr) {
    if (!all_mapped || size() == 1) return;
    const PeRange& pes = memory_.members().range();
    if (size() <= coll::CacheLineExchange::max_members)
        lines_ = std::make_unique<coll::CacheLineExchange>(memory_.addresses(layout_.lines()), pes, index(),
                                                           calls_.waiter(), resources.timeout);
    if (size() <= coll::BroadcastRing::max_members)
        ring_ = std::make_unique<coll::BroadcastRing>(memory_.addresses(layout_.ring()), pes, index(),
                                                      resources.pes_per_core > 1, calls_.waiter(), resources.timeout);
}

Status Team::put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) {
    return resources_.remote.put(members().at(member), offset, source, bytes, RemoteAccess::Completion::local);
}

Status Team::put_blocks(int member, const StridedBlocks& blocks, const void* source) {
    return resources_.remote.put_blocks(members().at(member), blocks, source);
}

Status Team::get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) {
    return resources_.remote.get(members().at(member), offset, dest, bytes, RemoteAccess::Completion::local);
}

}  // namespace npushmem
