// A range of addresses, such as 10.1.0.0/16, of which a port's is to be one.
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

class GidRange {
public:
    // "10.1.0.0/16", "2001:db8::/32", or an address alone. The error says what is accepted.
    static Result<GidRange> parse(const std::string& text);

    // An IPv4 address is as GIDs have it, ::ffff:10.1.2.3.
    [[nodiscard]] bool has(std::span<const std::uint8_t, 16> gid) const;
    // Is this the address that the range was written with?
    [[nodiscard]] bool begins_with(std::span<const std::uint8_t, 16> gid) const {
        return std::equal(first_.begin(), first_.end(), gid.begin());
    }
    [[nodiscard]] unsigned bits() const { return bits_; }  // of 128
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
    std::array<std::uint8_t, 16> first_{};
    unsigned bits_ = 0;  // that count
};

// What the user chose for the verbs transport.
enum class AddressFamily { ipv4, ipv6 };

// Who carries out 64-bit additions and compare-and-swap?
enum class NativeAtomics {
    never,        // the target's CPU
    if_coherent,  // the NIC, where it says that its atomics are atomic with the CPU's
    always,       // the NIC: the user knows that no CPU touches the words that NICs do
};

struct VerbsSettings {
    int gid_index = -1;  // -1: by RoCE version and address family
    int roce_version = 2;
    AddressFamily family = AddressFamily::ipv4;
    std::optional<GidRange> range;  // in place of the family
    std::uint8_t service_level = 0;
    std::uint8_t traffic_class = 0;
    std::uint16_t pkey = 0;  // 0: the first of the port
    int mtu = 0;             // bytes; 0: the port's
    std::uint8_t retry_count = 7;
    std::uint8_t timeout = 14;                  // 4.096 us times two to this power
    std::uint32_t queue_depth = 1024;           // work requests
    std::uint64_t chunk_bytes = 4ULL << 20;     // of memory that is registered at a time
    std::uint64_t stripe_bytes = 256ULL << 10;  // from so many on, over all ports; 0: never
    std::uint64_t cache_bytes = 256ULL << 20;   // of the program's memory that stay registered; 0: none
    NativeAtomics atomics = NativeAtomics::if_coherent;
    std::vector<NicRailEntry> nic_rails;  // of this host's ports
};

// The error names the variable, its value and what is accepted.
Result<VerbsSettings> read_verbs_settings(const Host& host);

// Which of a port's addresses to use, and how it is written for people.

// "::ffff:10.77.0.1" and the like.
std::string text_of(const ibv_gid& gid);
// For people: "10.77.0.1" of an IPv4 address.
std::string short_text_of(const ibv_gid& gid);
// Is the address good within its link only, and the same on every link?
bool is_link_local(const ibv_gid& gid);
// "3: RoCE v2 ::ffff:10.77.0.1".
std::string text_of(const ibv_gid_entry& entry);

// `table`: the entries of the port. `ethernet`: it speaks RoCE, otherwise InfiniBand. The error lists the table and
// says which variable to change.
Result<ibv_gid_entry> choose_gid(std::span<const ibv_gid_entry> table, bool ethernet, const VerbsSettings& settings);

}  // namespace npushmem::verbs
