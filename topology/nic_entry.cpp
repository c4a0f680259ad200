#include "topology/nic_entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/parse.hpp"

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

}  // namespace npushmem::topology
