// An IPv4 or IPv6 address with a port, as a value.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bootstrap/rendezvous/byte_reader.hpp"
#include "bootstrap/rendezvous/byte_writer.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

enum class Family : std::uint16_t { none = 0, v4 = 4, v6 = 6 };

class Address {
public:
    static constexpr std::size_t encoded_bytes = 24;

    // No address: what a rank without children gives for its listener.
    Address() = default;
    // From the kernel's form; family none when it is neither AF_INET nor AF_INET6.
    static Address from(const sockaddr& kernel_form);
    // "10.0.0.1" or "fe80::1", no names.
    static Result<Address> parse(const std::string& numeric_host, std::uint16_t port);
    // As parse, but asks the resolver for names; that may take as long as the resolver's own time-outs.
    static Result<Address> resolve(const std::string& host, std::uint16_t port, Family wanted);
    // "host:port" or "[v6]:port", the host by resolve().
    static Result<Address> resolve(const std::string& host_and_port, Family wanted);

    [[nodiscard]] Family family() const { return family_; }
    [[nodiscard]] bool given() const { return family_ != Family::none; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Address with_port(std::uint16_t port) const;
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool is_link_local() const;
    [[nodiscard]] std::string host_text() const;
    // "10.0.0.1:4000", "[::1]:4000".
    [[nodiscard]] std::string text() const;

    // The kernel's form; returns its length.
    socklen_t fill(sockaddr_storage& out) const;

    void encode(ByteWriter& out) const;
    // Family none on bytes that are no address; the reader's ok() tells of missing ones.
    static Address decode(ByteReader& in);

    friend bool operator==(const Address&, const Address&) = default;

private:
    Family family_ = Family::none;
    std::uint16_t port_ = 0;
    std::uint32_t scope_ = 0;           // interface index of a link-local IPv6 address
    std::array<std::byte, 16> host_{};  // network order; IPv4 uses the first four
};

}  // namespace npushmem::rendezvous
