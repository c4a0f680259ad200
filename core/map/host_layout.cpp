// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/host_layout.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace npushmem {

namespace {

auto key_of(const npushmem_host_id& id) { return std::make_tuple(id.machine, id.space, id.emulated, id.user); }

}  // namespace

std::string_view name_of(Distribution distribution) {
    switch (distribution) {
        case Distribution::block: return "block";
        case Distribution::round_robin: return "round robin";
        case Distribution::other: return "irregular";
    }
    return "irregular";
}

HostLayout::HostLayout(std::span<const npushmem_host_id> identity_of_pe) {
    using Key = decltype(key_of(identity_of_pe[0]));
    std::map<Key, int> number_of;
    std::vector<std::size_t> pes_on;
    host_of_.reserve(identity_of_pe.size());
    for (const auto& identity : identity_of_pe) {
        const auto [entry, fresh] = number_of.try_emplace(key_of(identity), static_cast<int>(number_of.size()));
        if (fresh) pes_on.push_back(0);
        ++pes_on[static_cast<std::size_t>(entry->second)];
        host_of_.push_back(entry->second);
    }
    for (const std::size_t pes : pes_on) pes_of_.emplace_back().reserve(pes);
    local_index_.reserve(host_of_.size());
    for (int pe = 0; pe < npes(); ++pe) {
        auto& members = pes_of_[static_cast<std::size_t>(host_of(pe))];
        local_index_.push_back(static_cast<int>(members.size()));
        members.push_back(pe);
    }
    even_ =
        std::all_of(pes_of_.begin(), pes_of_.end(), [&](const auto& pes) { return pes.size() == pes_of_[0].size(); });
    distribution_ = is_block()         ? Distribution::block
                    : is_round_robin() ? Distribution::round_robin
                                       : Distribution::other;
}

// Every host's PEs are consecutive.
bool HostLayout::is_block() const { return std::is_sorted(host_of_.begin(), host_of_.end()); }

// PE i is on host i mod hosts, as far as there are PEs.
bool HostLayout::is_round_robin() const {
    for (int pe = 0; pe < npes(); ++pe)
        if (host_of(pe) != pe % hosts()) return false;
    return true;
}

}  // namespace npushmem
