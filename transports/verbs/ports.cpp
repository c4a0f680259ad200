// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/ports.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>

#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {
namespace {

// The name of the device's folder in sysfs is its PCI address, for a PCI device.
std::string pci_address_of(const ibv_device& device) {
    std::error_code failed;
    const auto target = std::filesystem::read_symlink(std::filesystem::path(device.ibdev_path) / "device", failed);
    const std::string name = failed ? std::string() : target.filename().string();
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    unsigned function = 0;
    const bool pci = std::sscanf(name.c_str(), "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4;
    return pci ? name : std::string();
}

npushmem_device describe(const ibv_device& device, std::uint32_t port, const ibv_port_attr& attributes) {
    npushmem_device out{};
    out.struct_size = sizeof out;
    out.port = port;
    out.state = attributes.state == IBV_PORT_ACTIVE ? NPUSHMEM_PORT_ACTIVE : NPUSHMEM_PORT_DOWN;
    out.bits_per_second = rate_of(attributes.active_width, attributes.active_speed);
    (void)std::string(device.name).copy(out.name, sizeof out.name - 1);
    (void)pci_address_of(device).copy(out.pci_address, sizeof out.pci_address - 1);
    return out;
}

void list_ports_of(VerbsLibrary& library, ibv_device& device, std::vector<npushmem_device>& out,
                   std::vector<std::string>& notes) {
    const Owned<ibv_context> context(library.open_device(&device), [&](ibv_context* c) { library.close_device(c); });
    if (!context) {
        notes.push_back(fmt::format("cannot open {}: {}", device.name, text_of_error(errno)));
        return;
    }
    ibv_device_attr attributes{};
    if (const int failed = library.query_device(context.get(), &attributes); failed != 0) {
        notes.push_back(fmt::format("cannot query {}: {}", device.name, text_of_error(failed)));
        return;
    }
    for (std::uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
        ibv_port_attr found{};
        if (const int failed = library.query_port(context.get(), port, &found); failed != 0)
            notes.push_back(fmt::format("cannot query {}:{}: {}", device.name, port, text_of_error(failed)));
        else
            out.push_back(describe(device, port, found));
    }
}

std::string list_of(const std::vector<npushmem_device>& ports) {
    std::string out;
    for (const auto& port : ports) out += (out.empty() ? "" : ", ") + name_of(port);
    return out;
}

Status no_port(const std::vector<npushmem_device>& ports, const std::vector<std::string>& notes) {
    std::string text = "no RDMA device of this machine can be used";
    if (ports.empty() && notes.empty())
        text =
            "this machine has no RDMA device (ibv_devices lists them; the module of a NIC, such as mlx5_ib, or "
            "rdma_rxe for "
            "RoCE in software, creates them)";
    if (!ports.empty())
        text = fmt::format("no RDMA port is active: {} {} down; rdma link shows why", list_of(ports),
                           ports.size() == 1 ? "is" : "are");
    for (const auto& note : notes) text += "; " + note;
    return {Code::unreachable, text};
}

bool is_active(const npushmem_device& port) { return port.state == NPUSHMEM_PORT_ACTIVE; }

// The active port for the PE of this index, round robin.
std::size_t port_for(const std::vector<npushmem_device>& ports, int local_index) {
    std::vector<std::size_t> usable;
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (is_active(ports[i])) usable.push_back(i);
    return usable[static_cast<std::size_t>(std::max(local_index, 0)) % usable.size()];
}

}  // namespace

std::string text_of_error(int error) { return fmt::format("{} ({})", std::strerror(error), error); }

std::uint64_t rate_of(std::uint8_t width, std::uint8_t speed) {
    constexpr std::uint64_t mega = 1'000'000;
    const std::uint64_t lanes = width == 1    ? 1
                                : width == 2  ? 4
                                : width == 4  ? 8
                                : width == 8  ? 12
                                : width == 16 ? 2
                                              : 0;
    switch (speed) {
        case 1: return lanes * 2'500 * mega;
        case 2: return lanes * 5'000 * mega;
        case 4:
        case 8: return lanes * 10'000 * mega;
        case 16: return lanes * 14'062 * mega;
        case 32: return lanes * 25'000 * mega;
        case 64: return lanes * 50'000 * mega;
        case 128: return lanes * 100'000 * mega;
        default: return 0;
    }
}

std::string name_of(const npushmem_device& port) { return fmt::format("{}:{}", port.name, port.port); }

Result<std::vector<npushmem_device>> list_ports(VerbsLibrary& library, std::vector<std::string>& notes) {
    int count = 0;
    const Owned<ibv_device*> list(library.get_device_list(&count),
                                  [&](ibv_device** devices) { library.free_device_list(devices); });
    if (!list)
        return Status{Code::unreachable,
                      fmt::format("libibverbs cannot list the RDMA devices: {}{}", text_of_error(errno),
                                  errno == ENOSYS ? "; is the module ib_uverbs loaded?" : "")};
    std::vector<npushmem_device> out;
    for (int i = 0; i < count; ++i) list_ports_of(library, *list.get()[i], out, notes);
    return out;
}

namespace {

// Compares numbers within names by value: mlx5_2 is before mlx5_10.
auto place_of(const npushmem_device& port) {
    const std::string name = port.name;
    return std::tuple(std::string(port.pci_address), name.size(), name, port.port);
}

unsigned prefix_bits(std::span<const std::uint8_t> mask) {
    return std::accumulate(mask.begin(), mask.end(), 0U, [](unsigned sum, std::uint8_t byte) {
        return sum + static_cast<unsigned>(std::popcount(byte));
    });
}

// "10.1.0.7/24"; empty for an interface without an address of these families.
std::string range_of(const ifaddrs& interface) {
    if (interface.ifa_addr == nullptr || interface.ifa_netmask == nullptr) return {};
    const int family = interface.ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (family == AF_INET) {
        const auto& address = reinterpret_cast<const sockaddr_in*>(interface.ifa_addr)->sin_addr;
        const auto& mask = reinterpret_cast<const sockaddr_in*>(interface.ifa_netmask)->sin_addr;
        std::array<std::uint8_t, 4> bytes{};
        std::memcpy(bytes.data(), &mask, bytes.size());
        ::inet_ntop(family, &address, text.data(), text.size());
        return fmt::format("{}/{}", text.data(), prefix_bits(bytes));
    }
    if (family != AF_INET6) return {};
    const auto& address = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr)->sin6_addr;
    const auto& mask = reinterpret_cast<const sockaddr_in6*>(interface.ifa_netmask)->sin6_addr;
    ::inet_ntop(family, &address, text.data(), text.size());
    return fmt::format("{}/{}", text.data(), prefix_bits(mask.s6_addr));
}

}  // namespace

Result<std::vector<RailId>> rails_of_ports(std::span<const npushmem_device> ports,
                                           std::span<const NicRailEntry> entries) {
    std::vector<PortName> names;
    for (const auto& port : ports) names.push_back({port.name, port.port});
    const auto given = configured_rails(entries, names);
    if (!given.ok()) return given.status();
    std::vector<std::size_t> order(ports.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return place_of(ports[a]) < place_of(ports[b]); });
    std::vector<RailId> out(ports.size());
    for (unsigned place = 0; place < order.size(); ++place) {
        const auto& number = given.value()[order[place]];
        out[order[place]] = {number.value_or(std::min(place, max_rail)), number.has_value(), {}};
    }
    return out;
}

Result<PortSelection> PortSelection::find(VerbsLibrary& library, const VerbsSettings& settings, int local_index) {
    std::vector<std::string> notes;
    auto ports = list_ports(library, notes);
    if (!ports.ok()) return ports.status();
    PortSelection out;
    out.ports_ = std::move(ports).value();
    if (std::none_of(out.ports_.begin(), out.ports_.end(), is_active)) return no_port(out.ports_, notes);
    auto rails = rails_of_ports(out.ports_, settings.nic_rails);
    if (!rails.ok()) return rails.status();
    out.rails_ = std::move(rails).value();
    for (std::size_t i = 0; i < out.ports_.size(); ++i) out.ports_[i].rail = out.rails_[i].number + 1;
    out.chosen_ = port_for(out.ports_, local_index);
    return out;
}

Status PortSelection::choose(std::size_t index) {
    if (index >= ports_.size())
        return {Code::argument, fmt::format("RDMA port {} does not exist; this machine has {} ({})", index,
                                            ports_.size(), list_of(ports_))};
    chosen_ = index;
    return {};
}

std::vector<GidRange> host_subnets() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
    std::vector<GidRange> out;
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
        auto range = GidRange::parse(range_of(*each));
        if (range.ok()) out.push_back(std::move(range).value());
    }
    return out;
}

unsigned subnet_bits(const ibv_gid& gid, bool ethernet, std::span<const GidRange> subnets) {
    constexpr unsigned infiniband_prefix = 64;
    if (is_link_local(gid)) return 0;
    if (!ethernet) return infiniband_prefix;
    unsigned out = 0;
    for (const GidRange& range : subnets)
        if (range.begins_with(gid.raw)) out = std::max(out, range.bits());
    return out;
}

}  // namespace npushmem::verbs
