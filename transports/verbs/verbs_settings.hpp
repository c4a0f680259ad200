// SPDX-License-Identifier: BSD-3-Clause
// Settings of the verbs transport, and the choice of a port's address (GID) by them.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/nic_rails.hpp"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::verbs {

// A range of addresses, such as 10.1.0.0/16, from which a port's address is chosen.
class GidRange {
public:
    // Parses "10.1.0.0/16", "2001:db8::/32" or a single address. The error lists the accepted forms.
    static Result<GidRange> parse(const std::string& text);

    // IPv4 addresses have the form that GIDs use, ::ffff:10.1.2.3.
    [[nodiscard]] bool has(std::span<const std::uint8_t, 16> gid) const;
    // True for the address in the text of the range.
    [[nodiscard]] bool begins_with(std::span<const std::uint8_t, 16> gid) const {
        return std::equal(first_.begin(), first_.end(), gid.begin());
    }
    [[nodiscard]] unsigned bits() const { return bits_; }  // of 128
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
    std::array<std::uint8_t, 16> first_{};
    unsigned bits_ = 0;  // prefix length
};

enum class AddressFamily { ipv4, ipv6 };

// Who carries out 64-bit add and compare-and-swap.
enum class NativeAtomics {
    never,        // the target's CPU
    if_coherent,  // the NIC, if it reports that its atomics are atomic with the CPU's
    always,       // the NIC: the user guarantees that no CPU updates the same words
};

// The values of the transport's environment variables. It has a member for each variable, because all are read at once
// and handed down together.
struct VerbsSettings {
    int gid_index = -1;  // -1: by RoCE version and address family
    int roce_version = 2;
    AddressFamily family = AddressFamily::ipv4;
    std::optional<GidRange> range;  // replaces the family
    std::uint8_t service_level = 0;
    std::uint8_t traffic_class = 0;
    std::uint16_t pkey = 0;  // 0: the port's first key
    int mtu = 0;             // bytes; 0: the port's
    std::uint8_t retry_count = 7;
    std::uint8_t timeout = 14;                  // 4.096 us times two to this power
    std::uint32_t queue_depth = 1024;           // work requests
    std::uint64_t chunk_bytes = 4ULL << 20;     // unit of registration
    std::uint64_t stripe_bytes = 256ULL << 10;  // minimum size of striped transfers; 0: never
    std::uint64_t cache_bytes = 256ULL << 20;   // maximum size of cached registrations; 0: none
    NativeAtomics atomics = NativeAtomics::if_coherent;
    std::vector<NicRailEntry> nic_rails;  // of this host's ports
};

// The error names the variable, its value and the accepted values.
Result<VerbsSettings> read_verbs_settings(const Host& host);

// The address in IPv6 notation: "::ffff:10.77.0.1".
std::string text_of(const ibv_gid& gid);
// The address in short form, for people: "10.77.0.1" for IPv4.
std::string short_text_of(const ibv_gid& gid);
// True for a link-local address, which is valid within its link only.
bool is_link_local(const ibv_gid& gid);
// "3: RoCE v2 ::ffff:10.77.0.1".
std::string text_of(const ibv_gid_entry& entry);

// Chooses an address of a port. `table`: the addresses of the port. `ethernet`: RoCE, otherwise InfiniBand. The error
// lists the table and names the variables to change.
Result<ibv_gid_entry> choose_gid(std::span<const ibv_gid_entry> table, bool ethernet, const VerbsSettings& settings);

}  // namespace npushmem::verbs
