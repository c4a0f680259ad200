// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/sysfs_nic.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace npushmem::topology {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    return line;
}

// The number that `text` begins with ("100 Gb/sec (4X EDR)"), in thousandths to keep rates like 2.5.
std::uint64_t leading_thousandths(const std::string& text) {
    double number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || number < 0 || number > 1e9) return 0;
    return static_cast<std::uint64_t>(number * 1000.0);
}

std::vector<unsigned> port_numbers(const fs::path& ports) {
    std::vector<unsigned> numbers;
    std::error_code ignored;  // a device without the folder keeps its ports
    for (const auto& entry : fs::directory_iterator(ports, ignored)) {
        const std::string name = entry.path().filename();
        unsigned number = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
        if (parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size()) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

NicPort read_rdma_port(const fs::path& port, unsigned number) {
    NicPort out{number, PortState::unknown, 0};
    // The file contains "4: ACTIVE"; 4 is InfiniBand's number for a port that carries data.
    if (const auto state = first_line(port / "state")) {
        out.state = state->starts_with("4:") ? PortState::active : PortState::down;
    }
    if (const auto rate = first_line(port / "rate")) out.bits_per_second = leading_thousandths(*rate) * 1'000'000;
    return out;
}

void read_rdma(Nic& nic, const fs::path& device) {
    std::vector<NicPort> ports;
    for (const unsigned number : port_numbers(device / "ports")) {
        ports.push_back(read_rdma_port(device / "ports" / std::to_string(number), number));
    }
    if (!ports.empty()) nic.ports = std::move(ports);
}

void read_network(Nic& nic, const fs::path& device) {
    auto& port = nic.ports.front();
    if (const auto state = first_line(device / "operstate")) {
        if (*state == "up") port.state = PortState::active;
        if (*state == "down" || *state == "lowerlayerdown") port.state = PortState::down;
    }
    // Megabits per second; -1 or unreadable when the driver does not report it, as in most virtual machines.
    if (const auto speed = first_line(device / "speed")) port.bits_per_second = leading_thousandths(*speed) * 1'000;
}

}  // namespace

void read_port_states(Nic& nic, const std::string& sysfs) {
    if (nic.kind == NicKind::rdma) {
        read_rdma(nic, fs::path(sysfs) / "class/infiniband" / nic.name);
    } else {
        read_network(nic, fs::path(sysfs) / "class/net" / nic.name);
    }
}

}  // namespace npushmem::topology
