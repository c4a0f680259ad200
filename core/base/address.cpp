// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/parse.hpp"

namespace npushmem {

namespace {

int kernel_family(Family family) {
    switch (family) {
        case Family::v4: return AF_INET;
        case Family::v6: return AF_INET6;
        case Family::none: break;
    }
    return AF_UNSPEC;
}

Result<Address> look_up(const std::string& host, std::uint16_t port, Family wanted, int flags) {
    addrinfo hints{};
    hints.ai_family = kernel_family(wanted);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* raw = nullptr;
    const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &raw);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
    if (failure != 0 || raw == nullptr)
        return Status{Code::config, fmt::format("cannot resolve host '{}': {}", host, ::gai_strerror(failure))};
    return Address::from(*found->ai_addr).with_port(port);
}

}  // namespace

Result<Family> parse_family(const std::string& text) {
    const std::string lower = lowercase(text);
    if (lower.empty() || lower == "auto") return Family::none;
    if (lower == "af_inet") return Family::v4;
    if (lower == "af_inet6") return Family::v6;
    return Status{Code::config, "expected AF_INET, AF_INET6 or auto"};
}

Address Address::from(const sockaddr& kernel_form) {
    Address made;
    if (kernel_form.sa_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(kernel_form);
        made.family_ = Family::v4;
        made.port_ = ntohs(v4.sin_port);
        std::memcpy(made.host_.data(), &v4.sin_addr, sizeof v4.sin_addr);
    } else if (kernel_form.sa_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(kernel_form);
        made.family_ = Family::v6;
        made.port_ = ntohs(v6.sin6_port);
        made.scope_ = v6.sin6_scope_id;
        std::memcpy(made.host_.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    }
    return made;
}

Result<Address> Address::parse(const std::string& numeric_host, std::uint16_t port) {
    return look_up(numeric_host, port, Family::none, AI_NUMERICHOST);
}

Result<Address> Address::resolve(const std::string& host, std::uint16_t port, Family wanted) {
    return look_up(host, port, wanted, 0);
}

Result<Address> Address::resolve(const std::string& host_and_port, Family wanted) {
    const auto colon = host_and_port.rfind(':');
    const auto malformed = [&] {
        return Status{Code::config,
                      fmt::format("'{}' is not of the form host:port or [ipv6]:port with a port from 1 to "
                                  "65535",
                                  host_and_port)};
    };
    if (colon == std::string::npos || colon == 0) return malformed();
    std::string host = host_and_port.substr(0, colon);
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    std::uint16_t port = 0;
    const char* const end = host_and_port.data() + host_and_port.size();
    const auto parsed = std::from_chars(host_and_port.data() + colon + 1, end, port);
    if (parsed.ec != std::errc{} || parsed.ptr != end || port == 0) return malformed();
    return resolve(host, port, wanted);
}

Address Address::with_port(std::uint16_t port) const {
    Address copy = *this;
    copy.port_ = port;
    return copy;
}

Address Address::over_interface_of(const Address& local) const {
    Address copy = *this;
    if (family_ == Family::v6 && is_link_local()) copy.scope_ = local.scope_;
    return copy;
}

bool Address::is_loopback() const {
    if (family_ == Family::v4) return host_[0] == std::byte{127};
    std::array<std::byte, 16> one{};
    one[15] = std::byte{1};
    return family_ == Family::v6 && host_ == one;
}

bool Address::is_link_local() const {
    if (family_ == Family::v4) return host_[0] == std::byte{169} && host_[1] == std::byte{254};
    return family_ == Family::v6 && host_[0] == std::byte{0xfe} && (host_[1] & std::byte{0xc0}) == std::byte{0x80};
}

std::string Address::host_text() const {
    if (!given()) return "(none)";
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(kernel_family(family_), host_.data(), text.data(), text.size());
    return scope_ == 0 ? text.data() : fmt::format("{}%{}", text.data(), scope_);
}

std::string Address::text() const {
    if (family_ == Family::v6) return fmt::format("[{}]:{}", host_text(), port_);
    return fmt::format("{}:{}", host_text(), port_);
}

socklen_t Address::fill(sockaddr_storage& out) const {
    out = {};
    if (family_ == Family::v4) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(out);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port_);
        std::memcpy(&v4.sin_addr, host_.data(), sizeof v4.sin_addr);
        return sizeof v4;
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port_);
    v6.sin6_scope_id = scope_;
    std::memcpy(&v6.sin6_addr, host_.data(), sizeof v6.sin6_addr);
    return sizeof v6;
}

void Address::encode(ByteWriter& out) const {
    out.integer(static_cast<std::uint16_t>(family_)).integer(port_).integer(scope_).bytes(host_);
}

Address Address::decode(ByteReader& in) {
    Address made;
    const auto family = in.integer<std::uint16_t>();
    made.port_ = in.integer<std::uint16_t>();
    made.scope_ = in.integer<std::uint32_t>();
    in.bytes(made.host_);
    if (family != static_cast<std::uint16_t>(Family::v4) && family != static_cast<std::uint16_t>(Family::v6)) return {};
    made.family_ = static_cast<Family>(family);
    return made;
}

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

// Smaller is preferred.
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

Result<Address> choose_interface(const std::vector<Interface>& interfaces, const std::string& pattern, Family family,
                                 std::string_view variables) {
    const Pattern wanted(pattern);
    const Interface* best = nullptr;
    for (const Interface& each : interfaces) {
        if (!each.up || !each.address.given() || !wanted.matches(each.name)) continue;
        if (family != Family::none && each.address.family() != family) continue;
        if (best == nullptr || preference_of(each) < preference_of(*best)) best = &each;
    }
    if (best != nullptr) return best->address.with_port(0);
    return Status{
        Code::config,
        fmt::format("no network interface that is up fits {0}IFNAME='{1}' and {0}FAMILY={2}; this host has: {3}",
                    variables, pattern, name_of(family), listing(interfaces))};
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

Result<Address> choose_local_address(const std::string& pattern, Family family, std::string_view variables) {
    const auto interfaces = list_interfaces();
    if (!interfaces.ok()) return interfaces.status();
    return choose_interface(interfaces.value(), pattern, family, variables);
}

}  // namespace npushmem
