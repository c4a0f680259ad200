// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/dispatch/row_fan_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace npushmem::moe {
namespace {

constexpr unsigned bits_per_byte = 8;

// Where rows are at the ranks of this group.
class RowsAtRelays {
public:
    RowsAtRelays(SymmetricMemory& memory, const DispatchWork& work)
        : memory_(memory), work_(work), of_rank_(static_cast<std::size_t>(work.layout.ranks())) {}

    // The row of x of `relay` that holds the row of the source's token. Sources ascend from call to call, and the
    // tokens of each.
    Result<std::uint64_t> find(std::int32_t relay, std::int32_t source, std::uint32_t token) {
        Walk& walk = of_rank_[static_cast<std::size_t>(relay)];
        if (walk.slots.empty())
            if (Status s = fetch(walk, relay); !s.ok()) return s;
        while (walk.source < source) begin_next_source(walk, relay);
        while (walk.next < walk.end && token_of(walk.slots[walk.next]) < token) ++walk.next;
        if (walk.next == walk.end || token_of(walk.slots[walk.next]) != token)
            return Status{Code::protocol, fmt::format("dispatch, call {}: rank {} should have got the row of token {} "
                                                      "of rank {} for this host, but has not",
                                                      work_.epoch, relay, token, source)};
        return walk.next;
    }

private:
    // Rows from `next` to end - 1 are those of `source` that are left.
    struct Walk {
        std::vector<std::uint32_t> slots;
        std::int32_t source = -1;
        std::uint64_t next = 0;
        std::uint64_t end = 0;
    };

    [[nodiscard]] std::uint32_t token_of(std::uint32_t slot) const {
        return slot / static_cast<std::uint32_t>(work_.top_k);
    }
    [[nodiscard]] std::uint64_t count(std::int32_t source, std::int32_t relay) const {
        std::byte* record = work_.region + work_.layout.record(work_.epoch, source).value();
        return static_cast<std::uint64_t>(DispatchWork::counts_of(record)[relay]);
    }
    void begin_next_source(Walk& walk, std::int32_t relay) {
        const ExpertRows& rows = work_.layout.expert_rows();
        ++walk.source;
        walk.next = rows.is_fixed() ? rows.of_rank(walk.source) : walk.end;
        walk.end = walk.next + count(walk.source, relay);
    }
    Status fetch(Walk& walk, std::int32_t relay) {
        walk.slots.resize(work_.tables.totals[relay]);
        return memory_.fetch(walk.slots.data(), reinterpret_cast<const std::byte*>(work_.slots()),
                             bytes_of(Rows{walk.slots.size()}, Bytes{sizeof(std::uint32_t)}), relay);
    }

    SymmetricMemory& memory_;
    const DispatchWork& work_;
    std::vector<Walk> of_rank_;
};

// Appends the rows of one source.
Status find_rows_of(std::int32_t source, const RowFanOut& fan_out, RowsAtRelays& at_relays, const DispatchWork& work,
                    const ReceivedRows& received, const CombineConfig& config, std::vector<RelayedRow>& found) {
    const ExpertPlacement placement(config.experts, work.layout.ranks());
    const auto top_k = static_cast<std::uint64_t>(config.top_k);
    const Fragment rows = received.plan.fragment(0, source);
    for (std::uint64_t row = rows.first.value(); row < (rows.first + rows.count).value(); ++row) {
        const std::uint32_t token = received.plan.slots[row] / static_cast<std::uint32_t>(work.top_k);
        TokenRanks ranks;
        for (const Choice& choice : std::span(received.choices).subspan(row * top_k, top_k))
            if (choice.expert >= 0) ranks.insert(placement.rank_of(choice.expert));
        const std::int32_t relay = fan_out.relay_from(source, token, ranks.all());
        if (relay == fan_out.self()) continue;
        const auto relay_row = at_relays.find(relay, source, token);
        if (!relay_row.ok()) return relay_row.status();
        found.push_back({row, relay_row.value(), relay});
    }
    return {};
}

// The first rank of each rank's group: ranks that can access the same ranks, among them each other.
std::vector<std::int32_t> group_ranks(const std::vector<std::vector<bool>>& mapped) {
    std::vector<std::int32_t> group(mapped.size());
    std::vector<std::size_t> firsts;
    for (std::size_t rank = 0; rank < mapped.size(); ++rank) {
        const auto first = std::ranges::find_if(firsts, [&](std::size_t other) {
            return mapped[rank][other] && mapped[rank][rank] && mapped[rank] == mapped[other];
        });
        group[rank] = static_cast<std::int32_t>(first == firsts.end() ? rank : *first);
        if (first == firsts.end()) firsts.push_back(rank);
    }
    return group;
}

}  // namespace

RowFanOut::RowFanOut(const std::vector<std::vector<bool>>& mapped, std::int32_t self)
    : self_(self), group_(group_ranks(mapped)), to_(mapped.size(), false), from_(mapped.size(), false) {
    const auto ranks = static_cast<std::int32_t>(mapped.size());
    const auto members = [&](std::int32_t group) {
        std::vector<std::int32_t> all;
        for (std::int32_t rank = 0; rank < ranks; ++rank)
            if (group_[index(rank)] == group) all.push_back(rank);
        return all;
    };
    const auto is_apart = [&](std::int32_t source, const std::vector<std::int32_t>& group) {
        return group.size() > 1 &&
               std::ranges::none_of(group, [&](std::int32_t rank) { return mapped[index(source)][index(rank)]; });
    };
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        if (group_[index(rank)] != rank) continue;
        const std::vector<std::int32_t> group = members(rank);
        for (const std::int32_t member : group) to_[index(member)] = is_apart(self, group);
    }
    const std::vector<std::int32_t> own = members(group_[index(self)]);
    for (std::int32_t source = 0; source < ranks; ++source) from_[index(source)] = is_apart(source, own);
    if (std::ranges::find(from_, true) == from_.end()) return;
    std::ranges::copy_if(own, std::back_inserter(peers_), [&](std::int32_t rank) { return rank != self; });
}

RowFanOut RowFanOut::of_groups(std::vector<std::int32_t> groups, std::int32_t self) {
    std::vector<std::int32_t> sizes(groups.size(), 0);
    for (const std::int32_t group : groups) ++sizes[index(group)];
    const std::int32_t own = groups[index(self)];
    RowFanOut fan_out;
    fan_out.self_ = self;
    for (const std::int32_t group : groups) {
        fan_out.to_.push_back(group != own && sizes[index(group)] > 1);
        fan_out.from_.push_back(group != own && sizes[index(own)] > 1);
    }
    const bool gets_rows = std::ranges::find(fan_out.from_, true) != fan_out.from_.end();
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(groups.size()) && gets_rows; ++rank)
        if (groups[index(rank)] == own && rank != self) fan_out.peers_.push_back(rank);
    fan_out.group_ = std::move(groups);
    return fan_out;
}

std::int32_t RowFanOut::choose(std::int32_t source, std::uint32_t token, std::span<const std::int32_t> ranks,
                               std::int32_t rank) const {
    const auto is_of_group = [&](std::int32_t other) { return group_[index(other)] == group_[index(rank)]; };
    auto left = (token + static_cast<std::uint32_t>(source)) %
                static_cast<std::uint32_t>(std::ranges::count_if(ranks, is_of_group));
    for (const std::int32_t other : ranks)
        if (is_of_group(other) && left-- == 0) return other;
    return rank;
}

void publish_mapped(const DispatchLayout& layout, std::byte* region, const std::uint8_t* host_served) {
    std::byte* const bits = region + layout.mapped().value();
    for (std::int32_t rank = 0; rank < layout.ranks(); ++rank) {
        const auto at = static_cast<unsigned>(rank);
        if (host_served == nullptr || host_served[rank] == 0)
            bits[at / bits_per_byte] |= std::byte{1} << at % bits_per_byte;
    }
}

Result<RowFanOut> RowFanOut::fetch(SymmetricMemory& memory, const DispatchLayout& layout, const std::byte* region) {
    const auto ranks = static_cast<std::size_t>(layout.ranks());
    std::vector<std::vector<bool>> mapped(ranks, std::vector<bool>(ranks));
    std::vector<std::byte> bits(layout.mapped_bytes().value());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        Status got =
            memory.fetch(bits.data(), region + layout.mapped().value(), layout.mapped_bytes(), static_cast<int>(rank));
        if (!got.ok()) return got;
        for (std::size_t other = 0; other < ranks; ++other)
            mapped[rank][other] = (bits[other / bits_per_byte] >> other % bits_per_byte & std::byte{1}) != std::byte{0};
    }
    return RowFanOut(mapped, memory.my_pe());
}

std::vector<std::uint8_t> rows_through_relays(const RowFanOut& fan_out, const RoutingToRanks& routing,
                                              std::span<const std::uint32_t> slots, std::int32_t width) {
    std::vector<std::uint8_t> through;
    if (!fan_out.sends_through_relays()) return through;
    const auto of_each = static_cast<std::size_t>(width);
    for (const std::uint32_t slot : slots) {
        const std::size_t token = slot / of_each;
        const std::span<const std::int32_t> all(routing.ranks.data() + token * of_each, of_each);
        const auto of_token = all.first(static_cast<std::size_t>(std::ranges::find(all, no_expert) - all.begin()));
        const std::int32_t rank = routing.ranks[slot];
        through.push_back(fan_out.relay_of(static_cast<std::uint32_t>(token), of_token, rank) == rank ? 0 : 1);
    }
    return through;
}

Result<std::vector<RelayedRow>> find_relayed_rows(const RowFanOut& fan_out, SymmetricMemory& memory,
                                                  const DispatchWork& work, const ReceivedRows& received,
                                                  const CombineConfig& config) {
    std::vector<RelayedRow> found;
    RowsAtRelays at_relays(memory, work);
    for (std::int32_t source = 0; source < work.layout.ranks(); ++source) {
        if (!fan_out.relays_rows_of(source)) continue;
        if (Status s = find_rows_of(source, fan_out, at_relays, work, received, config, found); !s.ok()) return s;
    }
    return found;
}

Status copy_relayed_rows(SymmetricMemory& memory, const DispatchWork& work, std::span<const RelayedRow> rows) {
    const Bytes each = work.layout.row_bytes();
    for (const RelayedRow& copied : rows) {
        Status got = memory.fetch(work.x() + (each * copied.row).value(), work.x() + (each * copied.relay_row).value(),
                                  each, copied.relay);
        if (!got.ok()) return got;
    }
    return {};
}

}  // namespace npushmem::moe
