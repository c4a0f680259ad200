#include "bootstrap/rendezvous/interface_choice.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/parse.hpp"

namespace npushmem::rendezvous {
namespace {

class Pattern {
public:
    explicit Pattern(std::string_view text) {
        if (text.starts_with('^')) {
            exclude_ = true;
            text.remove_prefix(1);
        }
        if (text.starts_with('=')) {
            exact_ = true;
            text.remove_prefix(1);
        }
        names_ = split(text, ',');
    }

    [[nodiscard]] bool matches(const std::string& name) const {
        if (names_.empty()) return true;
        const auto fits = [&](const std::string& wanted) {
            return exact_ ? name == wanted : !wanted.empty() && name.starts_with(wanted);
        };
        return std::ranges::any_of(names_, fits) != exclude_;
    }

private:
    bool exclude_ = false;
    bool exact_ = false;
    std::vector<std::string> names_;
};

bool is_virtual(const std::string& name) {
    constexpr std::string_view beginnings[] = {"docker", "virbr", "veth", "br-", "cni", "flannel", "podman"};
    return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Smaller is better.
int preference_of(const Interface& interface) {
    const int family = interface.address.family() == Family::v6 ? 1 : 0;
    if (interface.address.is_loopback()) return 6 + family;
    if (interface.address.is_link_local()) return 4 + family;
    if (is_virtual(interface.name)) return 2 + family;
    return family;
}

std::string listing(const std::vector<Interface>& interfaces) {
    std::string text;
    for (const Interface& each : interfaces)
        text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", each.name, each.address.host_text(),
                            each.up ? "" : ", down");
    return text.empty() ? "none" : text;
}

const char* name_of(Family family) {
    switch (family) {
        case Family::v4: return "AF_INET";
        case Family::v6: return "AF_INET6";
        case Family::none: break;
    }
    return "auto";
}

}  // namespace

Result<Address> choose_interface(const std::vector<Interface>& interfaces, const std::string& pattern, Family family) {
    const Pattern wanted(pattern);
    const Interface* best = nullptr;
    for (const Interface& each : interfaces) {
        if (!each.up || !each.address.given() || !wanted.matches(each.name)) continue;
        if (family != Family::none && each.address.family() != family) continue;
        if (best == nullptr || preference_of(each) < preference_of(*best)) best = &each;
    }
    if (best != nullptr) return best->address.with_port(0);
    return Status{Code::config,
                  fmt::format("no network interface that is up fits NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME='{}' and "
                              "NPUSHMEM_BOOTSTRAP_UID_SOCK_FAMILY={}; this host has: {}",
                              pattern, name_of(family), listing(interfaces))};
}

Result<std::vector<Interface>> list_interfaces() {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0)
        return Status{Code::system, fmt::format("cannot list the network interfaces: {}", std::strerror(errno))};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
    std::vector<Interface> found;
    for (const ifaddrs* each = raw; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr) continue;
        const Address address = Address::from(*each->ifa_addr);
        if (address.given()) found.push_back({each->ifa_name, address, (each->ifa_flags & IFF_UP) != 0});
    }
    return found;
}

}  // namespace npushmem::rendezvous
