// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/parse.hpp"
#include "topology/policy/nic_variables.hpp"

namespace npushmem::topology {
namespace {

Status unknown_nic(const EntryName& entry, std::string_view nic, std::span<const Rail> rails) {
    std::vector<std::string> names;
    for (const auto& rail : rails) names.push_back(rail.nic);
    const std::string near = npushmem::nearest(nic, names);
    return entry.failure(fmt::format("no NIC has the name \"{}\"{}; this host has {}", nic,
                                     near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near),
                                     names_of(rails)));
}

}  // namespace

Status EntryName::failure(const std::string& what) const {
    return {Code::config, fmt::format("{} entry {} \"{}\": {}", variable, index + 1, text, what)};
}

std::optional<unsigned> parse_positive(std::string_view text) {
    unsigned number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || number == 0) return std::nullopt;
    return number;
}

Result<std::vector<std::size_t>> find_rails(const EntryName& entry, std::string_view nic, std::optional<unsigned> port,
                                            std::span<const Rail> rails) {
    std::vector<std::size_t> found;
    std::string ports;
    for (std::size_t i = 0; i < rails.size(); ++i) {
        if (rails[i].nic != nic) continue;
        ports += fmt::format("{}{}", ports.empty() ? "" : ", ", rails[i].port);
        if (!port || rails[i].port == *port) found.push_back(i);
    }
    if (ports.empty()) return unknown_nic(entry, nic, rails);
    if (found.empty()) return entry.failure(fmt::format("{} has no port {}; it has port {}", nic, *port, ports));
    return found;
}

std::string names_of(std::span<const Rail> rails) {
    if (rails.empty()) return "no NIC";
    std::string names;
    for (const auto& rail : rails) names += (names.empty() ? "" : ", ") + name_of(rail);
    return names;
}

namespace {

constexpr std::string_view list_variable = "NPUSHMEM_HCA_LIST";
constexpr std::string_view list_grammar = "write name or name:port, separated by commas";

Result<NicListEntry> parse_list_entry(const std::string& text, std::size_t index) {
    const EntryName name{list_variable, index, text};
    if (text.empty()) return name.failure(fmt::format("is empty; {}", list_grammar));
    if (text.front() == '^') {
        return name.failure("write ^ once, before the first entry; it makes the whole list an exclusion list");
    }
    const auto parts = split(text, ':');
    if (parts.size() > 2 || parts[0].empty()) return name.failure(fmt::format("is malformed; {}", list_grammar));
    if (parts.size() == 1) return NicListEntry{parts[0], std::nullopt, text};
    const auto port = parse_positive(parts[1]);
    if (!port) return name.failure(fmt::format("\"{}\" is not a port number; ports count from 1", parts[1]));
    return NicListEntry{parts[0], port, text};
}

// Records the entry as the owner of its rails. A rail has at most one owner.
Status claim(const EntryName& name, const std::vector<std::size_t>& found, std::span<const Rail> rails,
             std::vector<std::optional<std::size_t>>& owner) {
    for (const std::size_t rail : found) {
        if (owner[rail])
            return name.failure(fmt::format("{} is named twice, see entry {}", name_of(rails[rail]), *owner[rail] + 1));
        owner[rail] = name.index;
    }
    return {};
}

// The ports of an entry that are not down. A port that the entry names must work; there is no silent fallback. A NIC
// without a port in the entry means its working ports.
Result<std::vector<std::size_t>> usable(const EntryName& name, const NicListEntry& entry,
                                        const std::vector<std::size_t>& found, std::span<const Rail> rails) {
    std::vector<std::size_t> working;
    std::copy_if(found.begin(), found.end(), std::back_inserter(working),
                 [&](std::size_t rail) { return rails[rail].state != PortState::down; });
    if (!working.empty()) return working;
    return name.failure(fmt::format("{} down", entry.port ? "the port is" : "every port of the NIC is"));
}

std::vector<std::size_t> not_named(const std::vector<std::optional<std::size_t>>& owner) {
    std::vector<std::size_t> rest;
    for (std::size_t rail = 0; rail < owner.size(); ++rail) {
        if (!owner[rail]) rest.push_back(rail);
    }
    return rest;
}

}  // namespace

Result<NicList> parse_nic_list(std::string_view text) {
    NicList list;
    text = trimmed(text);
    list.exclude = text.starts_with('^');
    if (list.exclude) text.remove_prefix(1);
    if (trimmed(text).empty())
        return Status{Code::config, fmt::format("{} names no NIC; {}", list_variable, list_grammar)};
    const auto parts = split(text, ',');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto entry = parse_list_entry(parts[i], i);
        if (!entry.ok()) return entry.status();
        list.entries.push_back(std::move(entry).value());
    }
    return list;
}

Result<std::vector<std::size_t>> select_rails(const NicList& list, std::span<const Rail> rails) {
    std::vector<std::optional<std::size_t>> owner(rails.size());
    std::vector<std::size_t> named;
    for (std::size_t i = 0; i < list.entries.size(); ++i) {
        const auto& entry = list.entries[i];
        const EntryName name{list_variable, i, entry.text};
        auto found = find_rails(name, entry.nic, entry.port, rails);
        if (!found.ok()) return found.status();
        if (auto claimed = claim(name, found.value(), rails, owner); !claimed.ok()) return claimed;
        if (list.exclude) continue;
        found = usable(name, entry, found.value(), rails);
        if (!found.ok()) return found.status();
        named.insert(named.end(), found.value().begin(), found.value().end());
    }
    if (!list.exclude) return named;
    auto rest = not_named(owner);
    if (!rest.empty()) return rest;
    return Status{Code::config, fmt::format("{} excludes every NIC of this host ({})", list_variable, names_of(rails))};
}

namespace {

constexpr std::string_view mapping_variable = "NPUSHMEM_HCA_PE_MAPPING";
constexpr std::string_view mapping_grammar = "write name:port:count, separated by commas";

Result<NicMappingEntry> parse_mapping_entry(const std::string& text, std::size_t index) {
    const EntryName name{mapping_variable, index, text};
    if (text.empty()) return name.failure(fmt::format("is empty; {}", mapping_grammar));
    const auto parts = split(text, ':');
    if (parts.size() != 3 || parts[0].empty()) return name.failure(fmt::format("is malformed; {}", mapping_grammar));
    const auto port = parse_positive(parts[1]);
    if (!port) return name.failure(fmt::format("\"{}\" is not a port number; ports count from 1", parts[1]));
    const auto count = parse_positive(parts[2]);
    if (!count) return name.failure(fmt::format("\"{}\" is not a number of PEs; it must be at least 1", parts[2]));
    return NicMappingEntry{parts[0], *port, *count, text};
}

std::uint64_t sum_of(const std::vector<NicMappingEntry>& mapping) {
    std::uint64_t sum = 0;
    for (const auto& entry : mapping) sum += entry.count;
    return sum;
}

Status check_sum(std::uint64_t sum, std::size_t pes) {
    if (sum == pes) return {};
    return {Code::config,
            fmt::format("{}: the counts add up to {}, but this host has {} PE{}; change the counts so that "
                        "every PE gets one port (where several jobs of this host share the mapping, give every PE its "
                        "place in it with NPUSHMEM_DEVICE)",
                        mapping_variable, sum, pes, pes == 1 ? "" : "s")};
}

Status check_covers(std::uint64_t sum, std::span<const std::size_t> numbers) {
    for (const auto number : numbers) {
        if (number < sum) continue;
        return {Code::config,
                fmt::format("{}: the counts add up to {}, so PE {} of this host has no port (PEs of all jobs count, "
                            "from 0); make them add up to all PEs of the host",
                            mapping_variable, sum, number)};
    }
    return {};
}

// The entry of the PE with this number, which has one.
std::size_t entry_of(const std::vector<NicMappingEntry>& mapping, std::size_t number) {
    std::size_t entry = 0;
    for (; number >= mapping[entry].count; ++entry) number -= mapping[entry].count;
    return entry;
}

Result<std::size_t> resolve(const EntryName& name, const NicMappingEntry& entry, std::span<const Rail> rails,
                            std::map<std::size_t, std::size_t>& owner) {
    auto found = find_rails(name, entry.nic, entry.port, rails);
    if (!found.ok()) return found.status();
    const std::size_t rail = found.value().front();
    const auto [earlier, fresh] = owner.emplace(rail, name.index);
    if (!fresh)
        return name.failure(fmt::format("{} is named twice, see entry {}", name_of(rails[rail]), earlier->second + 1));
    if (rails[rail].state == PortState::down) return name.failure("the port is down");
    return rail;
}

}  // namespace

Result<std::vector<NicMappingEntry>> parse_nic_mapping(std::string_view text) {
    if (trimmed(text).empty())
        return Status{Code::config, fmt::format("{} names no NIC; {}", mapping_variable, mapping_grammar)};
    std::vector<NicMappingEntry> mapping;
    const auto parts = split(text, ',');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto entry = parse_mapping_entry(parts[i], i);
        if (!entry.ok()) return entry.status();
        mapping.push_back(std::move(entry).value());
    }
    return mapping;
}

Result<std::vector<MappedPe>> map_pes(const std::vector<NicMappingEntry>& mapping, std::span<const Rail> rails,
                                      std::span<const std::size_t> numbers, bool others) {
    std::map<std::size_t, std::size_t> owner;
    std::vector<std::size_t> rail_of_entry;
    for (std::size_t i = 0; i < mapping.size(); ++i) {
        auto rail = resolve({mapping_variable, i, mapping[i].text}, mapping[i], rails, owner);
        if (!rail.ok()) return rail.status();
        rail_of_entry.push_back(rail.value());
    }
    const auto sum = sum_of(mapping);
    Status fits = others ? check_covers(sum, numbers) : check_sum(sum, numbers.size());
    if (!fits.ok()) return fits;
    std::vector<MappedPe> mapped;
    for (const auto number : numbers) {
        const std::size_t entry = entry_of(mapping, number);
        mapped.push_back({entry, rail_of_entry[entry]});
    }
    return mapped;
}

}  // namespace npushmem::topology
