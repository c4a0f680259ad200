#include "topology/nic_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "topology/nic_entry.hpp"

namespace npushmem::topology {
namespace {

constexpr std::string_view list_variable = "NPUSHMEM_HCA_LIST";
constexpr std::string_view list_grammar = "write name or name:port, separated by commas";

Result<NicListEntry> parse_list_entry(const std::string& text, std::size_t index) {
    const EntryName name{list_variable, index, text};
    if (text.empty()) return name.failure(fmt::format("is empty; {}", list_grammar));
    if (text.front() == '^') {
        return name.failure("^ stands once, before the first entry, and turns the whole list into one of exclusions");
    }
    const auto parts = split(text, ':');
    if (parts.size() > 2 || parts[0].empty()) return name.failure(fmt::format("is malformed; {}", list_grammar));
    if (parts.size() == 1) return NicListEntry{parts[0], std::nullopt, text};
    const auto port = parse_positive(parts[1]);
    if (!port) return name.failure(fmt::format("\"{}\" is no port number; ports count from 1", parts[1]));
    return NicListEntry{parts[0], port, text};
}

// Marks the entry's rails in `owner`, the entry that named each; a rail can have one only.
Status claim(const EntryName& name, const std::vector<std::size_t>& found, std::span<const Rail> rails,
             std::vector<std::optional<std::size_t>>& owner) {
    for (const std::size_t rail : found) {
        if (owner[rail])
            return name.failure(fmt::format("{} is named twice, see entry {}", name_of(rails[rail]), *owner[rail] + 1));
        owner[rail] = name.index;
    }
    return {};
}

// Never a silent fall-back to another port: one that was named outright must work. Of a NIC named without a port, those
// ports that work are meant.
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

}  // namespace npushmem::topology
