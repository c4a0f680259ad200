// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/nic_rails.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/parse.hpp"

namespace npushmem {

namespace {

Status failure(std::size_t index, const std::string& text, const std::string& what) {
    return {Code::config, fmt::format("NPUSHMEM_NIC_RAILS entry {} \"{}\": {}", index + 1, text, what)};
}

Result<NicRailEntry> parse_entry(const std::string& text, std::size_t index) {
    const auto sides = split(text, '=');
    const auto name = sides.empty() ? std::vector<std::string>() : split(sides[0], ':');
    if (sides.size() != 2 || name.empty() || name.size() > 2 || name[0].empty())
        return failure(index, text, "write name=rail or name:port=rail, separated by commas");
    NicRailEntry out{name[0], std::nullopt, 0, text};
    if (name.size() == 2) {
        const auto port = parse_integer(name[1], 1, std::numeric_limits<std::uint8_t>::max());
        if (!port.ok()) return failure(index, text, fmt::format("the port: {}", port.status().message()));
        out.port = static_cast<unsigned>(port.value());
    }
    const auto rail = parse_integer(sides[1], 0, max_rail);
    if (!rail.ok()) return failure(index, text, fmt::format("the rail: {}", rail.status().message()));
    out.rail = static_cast<unsigned>(rail.value());
    return out;
}

std::string unknown_port(const NicRailEntry& entry, std::span<const PortName> ports) {
    std::vector<std::string> nics;
    std::vector<std::string> all;
    std::vector<unsigned> of_this_nic;
    for (const PortName& port : ports) {
        nics.push_back(port.nic);
        all.push_back(fmt::format("{}:{}", port.nic, port.port));
        if (port.nic == entry.nic) of_this_nic.push_back(port.port);
    }
    if (!of_this_nic.empty())
        return fmt::format("{} has no port {}; it has port {}", entry.nic, *entry.port, fmt::join(of_this_nic, ", "));
    const std::string near = nearest(entry.nic, nics);
    return fmt::format("no NIC has the name \"{}\"{}; this host has {}", entry.nic,
                       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near),
                       all.empty() ? "no NIC" : fmt::to_string(fmt::join(all, ", ")));
}

}  // namespace

Result<std::vector<NicRailEntry>> parse_nic_rails(std::string_view text) {
    std::vector<NicRailEntry> out;
    const auto parts = split(trimmed(text), ',');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto entry = parse_entry(parts[i], i);
        if (!entry.ok()) return entry.status();
        out.push_back(std::move(entry).value());
    }
    return out;
}

Result<std::vector<std::optional<unsigned>>> configured_rails(std::span<const NicRailEntry> entries,
                                                              std::span<const PortName> ports) {
    std::vector<std::optional<unsigned>> out(ports.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const NicRailEntry& entry = entries[i];
        bool found = false;
        for (std::size_t port = 0; port < ports.size(); ++port) {
            if (ports[port].nic != entry.nic || (entry.port && *entry.port != ports[port].port)) continue;
            if (out[port])
                return failure(i, entry.text,
                               fmt::format("an earlier entry names {}:{}", ports[port].nic, ports[port].port));
            out[port] = entry.rail;
            found = true;
        }
        if (!found) return failure(i, entry.text, unknown_port(entry, ports));
    }
    return out;
}

namespace {

enum class SubnetMatch { same, different, unknown };

SubnetMatch match(const Subnet& a, const Subnet& b) {
    if (a.bits == 0 || b.bits == 0) return SubnetMatch::unknown;
    if (a.bits != b.bits) return SubnetMatch::different;
    for (unsigned bit = 0; bit < a.bits; ++bit) {
        const unsigned mask = 0x80U >> bit % 8;
        if (((a.address.at(bit / 8) ^ b.address.at(bit / 8)) & mask) != 0) return SubnetMatch::different;
    }
    return SubnetMatch::same;
}

// Lower is better; nothing: the ports have no rail in common.
std::optional<int> penalty(const RailId& a, const RailId& b) {
    const bool same_number = a.number == b.number;
    if (a.given || b.given) return same_number ? std::optional(0) : std::nullopt;
    const SubnetMatch subnets = match(a.subnet, b.subnet);
    if (subnets == SubnetMatch::same) return same_number ? 0 : 1;
    if (!same_number) return std::nullopt;
    return subnets == SubnetMatch::unknown ? 2 : 3;  // a router may connect different subnets
}

struct Candidate {
    int penalty;
    RailPair pair;
};

std::vector<Candidate> candidates_of(std::span<const RailId> lower, std::span<const RailId> higher) {
    std::vector<Candidate> out;
    for (std::size_t i = 0; i < lower.size(); ++i)
        for (std::size_t j = 0; j < higher.size(); ++j)
            if (const auto found = penalty(lower[i], higher[j])) out.push_back({*found, {i, j}});
    const auto key = [](const Candidate& each) {
        return std::tuple(each.penalty, each.pair.mine + each.pair.theirs, each.pair.mine);
    };
    std::sort(out.begin(), out.end(), [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    return out;
}

// `mine` are the ports of the PE with the lower number.
std::vector<RailPair> pair_in_order(std::span<const RailId> lower, std::span<const RailId> higher) {
    std::vector<bool> lower_used(lower.size());
    std::vector<bool> higher_used(higher.size());
    std::vector<RailPair> out;
    for (const auto& [unused, pair] : candidates_of(lower, higher)) {
        if (lower_used[pair.mine] || higher_used[pair.theirs]) continue;
        lower_used[pair.mine] = higher_used[pair.theirs] = true;
        out.push_back(pair);
    }
    if (!out.empty()) return out;
    for (std::size_t i = 0; i < std::min(lower.size(), higher.size()); ++i) out.push_back({i, i});
    return out;
}

}  // namespace

std::vector<RailPair> pair_rails(int my_pe, std::span<const RailId> mine, int pe, std::span<const RailId> theirs) {
    if (my_pe <= pe) return pair_in_order(mine, theirs);
    auto out = pair_in_order(theirs, mine);
    for (RailPair& each : out) std::swap(each.mine, each.theirs);
    return out;
}

std::string pairing_reason(const RailId& mine, const RailId& theirs) {
    if (mine.number == theirs.number) return fmt::format("rail {} on both ends", mine.number);
    const bool of_one_rail = penalty(mine, theirs).has_value();
    return fmt::format("rails {} and {}{}", mine.number, theirs.number,
                       of_one_rail ? " in one subnet" : ", no rail in common");
}

}  // namespace npushmem
