#include "transports/verbs/port_rails.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>

#include "transports/verbs/gid_choice.hpp"

namespace npushmem::verbs {
namespace {

// Names of one kind count upwards: mlx5_2 is before mlx5_10.
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
