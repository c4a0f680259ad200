// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/nic_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>

#include "core/base/hash.hpp"

namespace npushmem::topology {
namespace {

constexpr std::uint32_t claim_magic = 0x434e504e;  // "NPNC" as little-endian bytes

// A claim in the table. Process and job are the row's owner and group.
struct Payload {
    std::uint32_t magic;
    std::uint32_t pe;
    std::uint64_t machine;
    std::uint32_t number;
    std::uint32_t port;
    std::uint8_t first;
    std::uint8_t distance;
    char nic[64];
    char device[64];
};
static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= HostTableRow::payload_bytes);

template <std::size_t Size>
void put(const std::string& text, char (&into)[Size]) {
    std::memcpy(into, text.data(), std::min(text.size(), Size));
}

template <std::size_t Size>
std::string get(const char (&text)[Size]) {
    return {text, strnlen(text, Size)};
}

}  // namespace

std::uint64_t machine_key(const Machine& machine, std::int64_t emulated_host) {
    return hash_bytes(fmt::format("{} {}", machine.identity, emulated_host));
}

HostTableRow to_row(const NicClaim& claim) {
    Payload payload{};
    payload.magic = claim_magic;
    payload.pe = claim.pe;
    payload.machine = claim.machine;
    payload.number = claim.number;
    payload.port = claim.port;
    payload.first = claim.first ? 1 : 0;
    payload.distance = static_cast<std::uint8_t>(claim.distance);
    put(claim.nic, payload.nic);
    put(claim.device, payload.device);
    HostTableRow row{claim.process, claim.job, {}};
    std::memcpy(row.payload.data(), &payload, sizeof payload);
    return row;
}

std::optional<NicClaim> claim_from(const HostTableRow& row) {
    Payload payload;
    std::memcpy(&payload, row.payload.data(), sizeof payload);
    if (payload.magic != claim_magic || payload.distance >= distance_class_count) return std::nullopt;
    return NicClaim{row.owner,          row.group,
                    payload.machine,    payload.pe,
                    payload.number,     get(payload.device),
                    get(payload.nic),   payload.port,
                    payload.first != 0, static_cast<DistanceClass>(payload.distance)};
}

std::vector<NicClaim> claims_of_others(std::span<const HostTableRow> rows, std::uint64_t machine, std::uint64_t job) {
    std::vector<NicClaim> out;
    for (const auto& row : rows) {
        auto claim = claim_from(row);
        if (claim && claim->machine == machine && claim->job != job) out.push_back(std::move(*claim));
    }
    return out;
}

RailUse use_of(std::span<const NicClaim> claims, std::span<const Rail> rails) {
    RailUse use{std::vector<std::size_t>(rails.size(), 0), std::vector<bool>(rails.size(), false)};
    for (const auto& claim : claims) {
        for (std::size_t i = 0; i < rails.size(); ++i) {
            if (rails[i].nic != claim.nic || rails[i].port != claim.port) continue;
            if (claim.first) ++use.first_users[i];
            if (!claim.first) use.further[i] = true;
        }
    }
    return use;
}

std::vector<std::uint32_t> npu_numbers(std::span<const std::optional<std::uint32_t>> wanted,
                                       std::span<const NicClaim> others) {
    std::set<std::uint32_t> taken;
    for (const auto& claim : others) taken.insert(claim.number);
    for (const auto& number : wanted) {
        if (number) taken.insert(*number);
    }
    std::vector<std::uint32_t> numbers;
    std::uint32_t next = 0;
    for (const auto& number : wanted) {
        while (!number && taken.contains(next)) ++next;
        numbers.push_back(number ? *number : next++);
    }
    return numbers;
}

}  // namespace npushmem::topology
