// SPDX-License-Identifier: BSD-3-Clause
// Network addresses, and the choice of the network interface.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// An IPv4 or IPv6 address with a port, as a value.
enum class Family : std::uint16_t { none = 0, v4 = 4, v6 = 6 };

// Accepts AF_INET, AF_INET6, auto and nothing, in any case; the last two are Family::none. Code::config.
Result<Family> parse_family(const std::string& text);

class Address {
public:
    static constexpr std::size_t encoded_bytes = 24;

    // No address; the listener of a rank without children.
    Address() = default;
    // Converts the kernel's form; family none if it is neither AF_INET nor AF_INET6.
    static Address from(const sockaddr& kernel_form);
    // Accepts "10.0.0.1", "fe80::1" or "fe80::1%2" (interface 2), no names of hosts.
    static Result<Address> parse(const std::string& numeric_host, std::uint16_t port);
    // Like parse, but resolves names; that may take as long as the resolver's timeouts.
    static Result<Address> resolve(const std::string& host, std::uint16_t port, Family wanted);
    // Accepts "host:port" or "[v6]:port"; resolve() converts the host.
    static Result<Address> resolve(const std::string& host_and_port, Family wanted);

    [[nodiscard]] Family family() const { return family_; }
    [[nodiscard]] bool given() const { return family_ != Family::none; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Address with_port(std::uint16_t port) const;
    // A link-local IPv6 address, reached over the interface of an address of this host.
    [[nodiscard]] Address over_interface_of(const Address& local) const;
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool is_link_local() const;
    // What parse() accepts.
    [[nodiscard]] std::string host_text() const;
    // "10.0.0.1:4000", "[::1]:4000".
    [[nodiscard]] std::string text() const;

    // The kernel's form; returns its length.
    socklen_t fill(sockaddr_storage& out) const;

    void encode(ByteWriter& out) const;
    // Family none if the bytes are not an address; the reader's ok() reports missing bytes.
    static Address decode(ByteReader& in);

    friend bool operator==(const Address&, const Address&) = default;

private:
    Family family_ = Family::none;
    std::uint16_t port_ = 0;
    std::uint32_t scope_ = 0;           // interface index of an IPv6 address; 0: none
    std::array<std::byte, 16> host_{};  // network order; IPv4 uses the first four
};

// One address of one interface.
struct Interface {
    std::string name;
    Address address;
    bool up = true;
};

// Chooses the address to use. `pattern` is written as for NCCL: names separated by commas, each matching interfaces
// that begin with it; a leading "=" matches whole names only, a leading "^" excludes the matches ("^=" for both).
// Empty: all. `family` none: IPv4 first. Of the matches it takes the first, in this order of preference: ordinary
// interfaces, bridges of containers, link-local addresses, loopback. Code::config, with the list, if nothing matches;
// the message names the variables <variables>IFNAME and <variables>FAMILY.
Result<Address> choose_interface(const std::vector<Interface>& interfaces, const std::string& pattern, Family family,
                                 std::string_view variables);

// Lists the interfaces of this machine.
Result<std::vector<Interface>> list_interfaces();
// Chooses among them.
Result<Address> choose_local_address(const std::string& pattern, Family family, std::string_view variables);

}  // namespace npushmem
