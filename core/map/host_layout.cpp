// SPDX-License-Identifier: BSD-3-Clause
#include "core/map/host_layout.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace npushmem {

namespace {

auto key_of(const npushmem_host_id& id) { return std::make_tuple(id.machine, id.space, id.emulated, id.user); }

// PE i is on host i mod hosts, as far as there are PEs.
bool is_round_robin(std::span<const int> host_of, int hosts) {
    for (std::size_t pe = 0; pe < host_of.size(); ++pe)
        if (host_of[pe] != static_cast<int>(pe) % hosts) return false;
    return true;
}

}  // namespace

std::string_view name_of(Distribution distribution) {
    switch (distribution) {
        case Distribution::block: return "block";
        case Distribution::round_robin: return "round robin";
        case Distribution::other: return "irregular";
    }
    return "irregular";
}

HostLayout::HostLayout(std::span<const npushmem_host_id> identity_of_pe)
    : npes_(static_cast<int>(identity_of_pe.size())) {
    using Key = decltype(key_of(identity_of_pe[0]));
    std::map<Key, int> number_of;
    std::vector<int> pes_on;
    host_of_.reserve(identity_of_pe.size());
    for (const auto& identity : identity_of_pe) {
        const auto [entry, fresh] = number_of.try_emplace(key_of(identity), hosts_);
        if (fresh) {
            ++hosts_;
            pes_on.push_back(0);
        }
        ++pes_on[static_cast<std::size_t>(entry->second)];
        host_of_.push_back(entry->second);
    }
    even_ = std::ranges::all_of(pes_on, [&](int pes) { return pes == pes_on[0]; });
    if (std::ranges::is_sorted(host_of_)) {
        distribution_ = Distribution::block;
        first_of_.assign(1, 0);
        for (const int pes : pes_on) first_of_.push_back(first_of_.back() + pes);
    } else if (is_round_robin(host_of_, hosts_)) {
        distribution_ = Distribution::round_robin;
    }
    if (distribution_ != Distribution::other) {
        host_of_ = std::vector<int>();  // frees it
        return;
    }
    pes_of_.resize(pes_on.size());
    for (std::size_t host = 0; host < pes_on.size(); ++host)
        pes_of_[host].reserve(static_cast<std::size_t>(pes_on[host]));
    local_index_.reserve(host_of_.size());
    for (int pe = 0; pe < npes_; ++pe) {
        auto& members = pes_of_[static_cast<std::size_t>(host_of(pe))];
        local_index_.push_back(static_cast<int>(members.size()));
        members.push_back(pe);
    }
}

HostLayout HostLayout::of_one_host(int npes) {
    HostLayout layout(std::span<const npushmem_host_id>{});
    layout.npes_ = npes;
    layout.hosts_ = 1;
    layout.first_of_ = {0, npes};
    return layout;
}

int HostLayout::host_of(int pe) const {
    if (hosts_ == 1) return 0;
    switch (distribution_) {
        case Distribution::block:
            return static_cast<int>(std::ranges::upper_bound(first_of_, pe) - first_of_.begin()) - 1;
        case Distribution::round_robin: return pe % hosts_;
        case Distribution::other: break;
    }
    return host_of_[static_cast<std::size_t>(pe)];
}

int HostLayout::local_index(int pe) const {
    switch (distribution_) {
        case Distribution::block: return pe - first_of_[static_cast<std::size_t>(host_of(pe))];
        case Distribution::round_robin: return pe / hosts_;
        case Distribution::other: break;
    }
    return local_index_[static_cast<std::size_t>(pe)];
}

PeRange HostLayout::pes_of(int host) const {
    const auto at = static_cast<std::size_t>(host);
    switch (distribution_) {
        case Distribution::block: return {first_of_[at], 1, first_of_[at + 1] - first_of_[at]};
        case Distribution::round_robin: return {host, hosts_, (npes_ - host + hosts_ - 1) / hosts_};
        case Distribution::other: break;
    }
    return PeRange::of(pes_of_[at]);
}

}  // namespace npushmem
