#include "topology/nic_mapping.hpp"

#include <fmt/format.h>

#include <map>

#include "core/base/parse.hpp"
#include "topology/nic_entry.hpp"

namespace npushmem::topology {
namespace {

constexpr std::string_view mapping_variable = "NPUSHMEM_HCA_PE_MAPPING";
constexpr std::string_view mapping_grammar = "write name:port:count, separated by commas";

Result<NicMappingEntry> parse_mapping_entry(const std::string& text, std::size_t index) {
    const EntryName name{mapping_variable, index, text};
    if (text.empty()) return name.failure(fmt::format("is empty; {}", mapping_grammar));
    const auto parts = split(text, ':');
    if (parts.size() != 3 || parts[0].empty()) return name.failure(fmt::format("is malformed; {}", mapping_grammar));
    const auto port = parse_positive(parts[1]);
    if (!port) return name.failure(fmt::format("\"{}\" is no port number; ports count from 1", parts[1]));
    const auto count = parse_positive(parts[2]);
    if (!count) return name.failure(fmt::format("\"{}\" is no number of PEs; it must be at least 1", parts[2]));
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
                fmt::format("{}: the counts add up to {}, so that there is no port for PE {} of this host (all jobs "
                            "counted, from 0); make them add up to all PEs of the host",
                            mapping_variable, sum, number)};
    }
    return {};
}

// The entry of the PE with this number; there is one.
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
