#include "core/base/nic_rails.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "core/base/parse.hpp"
#include "core/base/strings.hpp"

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

}  // namespace npushmem
