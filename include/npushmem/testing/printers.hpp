// SPDX-License-Identifier: BSD-3-Clause
// Prints the types of plugins in failures of GoogleTest: "range (-101)" instead of bytes. Include it before the first
// assertion on such a type, in every file of a test program or in none: mocks.hpp and matchers.hpp do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>

#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// A set of NPUSHMEM_CAP_x that prints and compares as such: EXPECT_EQ(Capabilities{a}, Capabilities{b}).
struct Capabilities {
    std::uint64_t bits = 0;
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Capabilities& capabilities) {
    constexpr const char* names[] = {"map",        "put",    "get",       "atomic", "put_signal",    "ordered",
                                     "devices",    "remote", "decorator", "pins",   "reports_death", "target_progress",
                                     "put_strided"};
    std::uint64_t left = capabilities.bits;
    const char* separator = "";
    for (std::size_t bit = 0; bit < std::size(names); ++bit) {
        if ((left >> bit & 1) == 0) continue;
        left &= ~(std::uint64_t{1} << bit);
        out << separator << names[bit];
        separator = ", ";
    }
    if (left != 0) {
        const std::ios_base::fmtflags flags = out.flags();
        out << separator << "0x" << std::hex << left;
        out.flags(flags);
        separator = ", ";
    }
    return *separator == '\0' ? out << "no capabilities" : out;
}

// "range (-101)".
inline std::ostream& operator<<(std::ostream& out, Code code) {
    return out << name_of(code) << " (" << static_cast<std::int32_t>(code) << ")";
}

inline std::ostream& operator<<(std::ostream& out, const Status& status) {
    out << status.code();
    return status.message().empty() ? out : out << ": " << status.message();
}

inline std::ostream& operator<<(std::ostream& out, const Reach& reach) {
    out << "reach{" << Capabilities{reach.capabilities};
    if ((reach.atomic_32 | reach.atomic_64) != 0) {
        const std::ios_base::fmtflags flags = out.flags();
        out << std::hex << "; atomic_32 0x" << reach.atomic_32 << ", atomic_64 0x" << reach.atomic_64;
        out.flags(flags);
    }
    return out << "; \"" << reach.why << "\"}";
}

template <class T>
std::ostream& operator<<(std::ostream& out, const Result<T>& result) {
    return result.ok() ? out << "a value" : out << "no value: " << result.status();
}

}  // namespace npushmem

// The structures of C are global: so are their functions, where lookup by argument finds them.

inline std::ostream& operator<<(std::ostream& out, const npushmem_host_id& host) {
    out << "host{machine " << host.machine << ", space " << host.space << ", user " << host.user;
    if (host.emulated >= 0) out << ", emulated host " << host.emulated;
    return out << "}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_peer& peer) {
    out << "peer{PE " << peer.pe << ", process " << peer.process_id << ", " << peer.host << ", ";
    if (peer.host_name != nullptr) out << "host name \"" << peer.host_name << "\", ";
    return peer.address == nullptr ? out << "no address}" : out << "address of " << peer.address_bytes << " bytes}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_rma& op) {
    return out << "rma{PE " << op.pe << ", remote " << op.remote << " + " << op.offset << ", local " << op.local << ", "
               << op.bytes << " bytes}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_atomic& op) {
    constexpr const char* names[] = {"fetch", "set",          "add",       "and",       "or",       "xor",
                                     "swap",  "compare_swap", "fetch_add", "fetch_and", "fetch_or", "fetch_xor"};
    static_assert(std::size(names) == NPUSHMEM_ATOMIC_COUNT);
    out << "atomic{";
    if (op.operation < NPUSHMEM_ATOMIC_COUNT)
        out << names[op.operation];
    else
        out << "unknown operation " << int{op.operation};
    out << ", " << int{op.width} << " bytes, PE " << op.pe << ", remote " << op.remote << " + " << op.offset
        << ", operand " << op.operand;
    if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP) out << ", compare " << op.compare;
    return out << ", result " << op.result << "}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_put_signal& op) {
    out << "put_signal{" << op.data << ", ";
    if (op.operation == NPUSHMEM_SIGNAL_SET)
        out << "set";
    else if (op.operation == NPUSHMEM_SIGNAL_ADD)
        out << "add";
    else
        out << "unknown operation " << op.operation;
    return out << " signal " << op.signal << ", remote " << op.signal_remote << " + " << op.signal_offset << "}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_put_strided& op) {
    return out << "put_strided{" << op.block << ", " << op.count << " times, strides " << op.remote_stride
               << " remote, " << op.local_stride << " local}";
}

inline std::ostream& operator<<(std::ostream& out, const npushmem_event& event) {
    using npushmem::operator<<;
    out << "event{" << static_cast<npushmem::Code>(event.code);
    if (event.pe >= 0) out << ", PE " << event.pe;
    return out << ", \"" << npushmem::text_of(event.message) << "\"}";
}
