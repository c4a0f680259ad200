// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/nic_rails.hpp"

namespace npushmem::topology {
namespace {

// Reads a plugin's character array, which has no terminator when it is full.
template <std::size_t Size>
std::string text_of(const char (&text)[Size]) {
    return {text, strnlen(text, Size)};
}

Location location_of(const Machine& machine, const std::string& address, const std::string& name) {
    if (const auto pci = find_pci(machine, address)) return {pci, machine.pci[*pci].numa};
    const auto nic =
        std::find_if(machine.nics.begin(), machine.nics.end(), [&](const Nic& n) { return n.name == name; });
    if (nic == machine.nics.end()) return {};
    return {nic->pci, nic->numa};
}

Rail to_rail(const Machine& machine, const npushmem_device& device) {
    Rail rail;
    rail.nic = text_of(device.name);
    rail.port = device.port;
    rail.state = device.state == NPUSHMEM_PORT_ACTIVE ? PortState::active : PortState::down;
    rail.bits_per_second = device.bits_per_second;
    rail.location = location_of(machine, text_of(device.pci_address), rail.nic);
    if (device.rail > 0) rail.number = device.rail - 1;
    return rail;
}

void append_rails(std::vector<Rail>& rails, const Nic& nic) {
    for (const auto& port : nic.ports) {
        rails.push_back({nic.name, port.number, port.state, port.bits_per_second, {nic.pci, nic.numa}, std::nullopt});
    }
}

}  // namespace

std::string name_of(const Rail& rail) { return fmt::format("{}:{}", rail.nic, rail.port); }

std::vector<Rail> rails_of(const Machine& machine, std::span<const npushmem_device> devices) {
    std::vector<Rail> rails;
    for (const auto& device : devices) rails.push_back(to_rail(machine, device));
    return rails;
}

std::vector<Rail> rails_of(const Machine& machine) {
    const bool has_rdma =
        std::any_of(machine.nics.begin(), machine.nics.end(), [](const Nic& nic) { return nic.kind == NicKind::rdma; });
    std::vector<Rail> rails;
    for (const auto& nic : machine.nics) {
        if ((nic.kind == NicKind::rdma) == has_rdma) append_rails(rails, nic);
    }
    return rails;
}

Result<std::vector<std::uint32_t>> rail_numbers(std::span<const Rail> rails, const std::string& nic_rails) {
    const auto entries = parse_nic_rails(nic_rails);
    if (!entries.ok()) return entries.status();
    // The variable does not apply to a host without NICs.
    if (rails.empty()) return std::vector<std::uint32_t>{};
    std::vector<PortName> ports;
    for (const auto& rail : rails) ports.push_back({rail.nic, rail.port});
    const auto given = configured_rails(entries.value(), ports);
    if (!given.ok()) return given.status();
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < rails.size(); ++i)
        out.push_back(given.value()[i].value_or(rails[i].number.value_or(static_cast<std::uint32_t>(i))));
    return out;
}

}  // namespace npushmem::topology
