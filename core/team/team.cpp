// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/team/team_hosts.hpp"

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
    keep_method_rules();
    begin_library();
    if (size() == 1) return;
    if (all_mapped)
        begin_lines();
    else if (resources.hosts_map)
        begin_hosts();
}

void Team::begin_lines() {
    const PeRange& pes = members().range();
    if (size() <= coll::CacheLineExchange::max_members)
        lines_ = std::make_unique<coll::CacheLineExchange>(memory_.addresses(layout_.lines()), pes, index(),
                                                           calls_.waiter(), resources_.timeout);
    if (size() <= coll::BroadcastRing::max_members)
        ring_ = std::make_unique<coll::BroadcastRing>(memory_.addresses(layout_.ring()), pes, index(),
                                                      resources_.pes_per_core > 1, calls_.waiter(), resources_.timeout);
}

void Team::begin_hosts() {
    auto by_host = members_by_host(members(), resources_.layout);
    if (by_host.size() < 2) return;
    host_grid_ = host_grid_of(by_host, index());
    if (by_host.size() > coll::HostSync::max_slots) return;
    host_signals_ = std::make_unique<TeamHostSignals>(resources_, memory_, calls_.waiter());
    host_sync_ = std::make_unique<coll::HostSync>(*host_signals_, layout_.host_sync(), std::move(by_host), index());
    if (size() <= coll::LeaderExchange::max_members)
        leader_exchange_ = std::make_unique<coll::LeaderExchange>(*this, *host_sync_, layout_.leader_exchange());
}

void Team::begin_library() {
    if (resources_.collectives == nullptr || size() == 1) return;
    coll::LibraryTeam::Description description;
    for (int member = 0; member < size(); ++member) description.pes.push_back(members().at(member));
    // Slots are equal in size, so their numbers differ.
    description.number = static_cast<std::uint32_t>(layout_.barrier_state() /
                                                    TeamLayout::bytes(resources_.npes, resources_.layout.hosts() > 1));
    description.input = barrier_.selection_input();
    description.name = name_;
    library_ = std::make_unique<coll::LibraryTeam>(*resources_.collectives, *this, std::move(description),
                                                   calls_.waiter(), resources_.timeout);
    // A barrier that the user has selected by name is one of npushmem's.
    if (resources_.algorithm == "auto") barrier_.use_library(library_.get());
}

void Team::keep_method_rules() {
    const auto& input = barrier_.selection_input();
    for (std::uint32_t collective = 0; collective < coll::collective_count; ++collective)
        for (const barrier::LibraryRule* rule :
             resources_.tuning.library_rules_for(coll::collective_names[collective], input))
            method_rules_[collective].push_back({rule->bytes, rule->method});
}

coll::Method Team::method(std::uint32_t collective, std::uint64_t bytes) const {
    if (method_ != coll::Method::automatic)
        return std::ranges::count(coll::methods_of(collective), method_) > 0 ? method_ : coll::Method::automatic;
    for (const MethodRule& rule : method_rules_[collective])
        if (rule.bytes.contains(static_cast<double>(bytes))) return rule.method;
    return coll::Method::automatic;
}

Status Team::select_collectives(std::string_view choice) {
    using Selection = coll::LibraryTeam::Selection;
    std::string_view name = choice;
    coll::Method method = coll::Method::automatic;
    if (constexpr std::string_view own = "npushmem:"; name.starts_with(own)) {
        const auto named = coll::method_named(name.substr(own.size()));
        if (!named.ok()) return named.status();
        method = named.value();
        name = "npushmem";
    }
    const std::string loaded = resources_.collectives != nullptr ? resources_.collectives->name() : "";
    if (name != "npushmem" && name != "auto" && (name.empty() || name != loaded))
        return {Code::argument,
                fmt::format("there is no library \"{}\" of collectives in this job; there are: npushmem{}{}; "
                            "NPUSHMEM_COLL_LIBRARY loads one at start",
                            name, loaded.empty() ? "" : ", ", loaded)};
    if (library_ && name == loaded && !library_->refusal().ok())
        return {
            Code::unsupported,
            fmt::format("{} does not serve the team {}, as its first call has found: {}; npushmem's own collectives "
                        "do",
                        loaded, name_, library_->refusal().message())};
    selected_collectives_ = choice;
    method_ = method;
    if (!library_) return {};
    library_->select(name == "npushmem" ? Selection::own : name == "auto" ? Selection::by_rules : Selection::library);
    const bool ours = name == "auto" && resources_.algorithm != "auto";
    barrier_.use_library(ours ? nullptr : library_.get());
    return {};
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
