// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/base/parse.hpp"

namespace npushmem::topology {

std::string describe(const CpuSet& cpus) {
    if (cpus.empty()) return "none";
    std::string out;
    for (std::size_t first = 0; first < cpus.size();) {
        std::size_t last = first;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        if (!out.empty()) out += ',';
        out += first == last ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
        first = last + 1;
    }
    return out;
}

std::string_view name_of(PortState state) {
    switch (state) {
        case PortState::active: return "active";
        case PortState::down: return "down";
        case PortState::unknown: break;
    }
    return "state unknown";
}

namespace {

struct AcceleratorRow {
    std::uint16_t class_id;
    std::uint16_t vendor;  // 0: any
};

constexpr std::array<AcceleratorRow, 5> rows{{
    {0x1200, 0},       // processing accelerator
    {0x0b40, 0},       // co-processor
    {0x0302, 0x10de},  // 3D controller
    {0x0300, 0x10de},  // the same vendor's boards that also drive a screen
    {0x0380, 0x1002},  // display controller without a screen
}};

}  // namespace

bool is_accelerator(std::uint16_t class_id, std::uint16_t vendor) {
    return std::any_of(rows.begin(), rows.end(), [&](const AcceleratorRow& row) {
        return row.class_id == class_id && (row.vendor == 0 || row.vendor == vendor);
    });
}

std::optional<std::size_t> find_pci(const Machine& machine, std::string_view address) {
    std::string wanted = lowercase(address);
    if (std::count(wanted.begin(), wanted.end(), ':') == 1) wanted.insert(0, "0000:");
    const auto found = std::find_if(machine.pci.begin(), machine.pci.end(), [&](const PciObject& object) {
        return object.kind == PciKind::device && object.address == wanted;
    });
    if (found == machine.pci.end()) return std::nullopt;
    return static_cast<std::size_t>(found - machine.pci.begin());
}

std::uint32_t numa_distance(const Machine& machine, std::size_t from, std::size_t to) {
    if (from < machine.numa_distances.size() && to < machine.numa_distances[from].size()) {
        return machine.numa_distances[from][to];
    }
    if (from == to) return 10;
    const auto& package = machine.numa_nodes.at(from).package;
    return package && package == machine.numa_nodes.at(to).package ? 12 : 21;
}

std::size_t cpu_count(const Machine& machine) {
    std::size_t count = 0;
    for (const auto& core : machine.cores) count += core.cpus.size();
    return count;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the leading run of digits off `text`, without its leading zeros.
std::string_view take_number(std::string_view& text) {
    std::size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    std::string_view number = text.substr(0, length);
    text.remove_prefix(length);
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    return number;
}

int compare_numbers(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            if (const int order = compare_numbers(take_number(a), take_number(b)); order != 0) return order < 0;
        } else {
            if (a.front() != b.front()) return a.front() < b.front();
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    // "x01" and "x1" count the same; the plain order keeps them apart.
    return a.size() != b.size() ? a.size() < b.size() : whole_a < whole_b;
}

}  // namespace npushmem::topology
