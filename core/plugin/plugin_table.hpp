// SPDX-License-Identifier: BSD-3-Clause
// The checks of each plugin table: recognising a valid one and completing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/plugin/plugin_finder.hpp"
#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// The first bytes of every table of every major version.
struct TableHeader {
    std::uint32_t struct_size;
    std::uint16_t major;
    std::uint16_t minor;
};

template <class Table>
struct TableTraits;

template <>
struct TableTraits<npushmem_transport_v1> {
    static constexpr PluginKind kind = PluginKind::transport;
    static constexpr std::uint16_t major = NPUSHMEM_TRANSPORT_MAJOR;
    static constexpr std::uint16_t minor = NPUSHMEM_TRANSPORT_MINOR;
    // A table must include all mandatory functions.
    static constexpr std::size_t min_bytes = offsetof(npushmem_transport_v1, devices);

    // Returns the first missing mandatory function, or "".
    static std::string missing_function(const npushmem_transport_v1& table);
    // Returns the first contradiction between capabilities and functions, as a clause, or "".
    static std::string capability_conflict(const npushmem_transport_v1& table);
    // Replaces every missing function by a stub, so that callers need no null checks.
    static void fill_defaults(npushmem_transport_v1& table);
    // Returns whether the plugin has no `forget`, also after fill_defaults.
    static bool is_forget_missing(const npushmem_transport_v1& table);
};

template <>
struct TableTraits<npushmem_bootstrap_v1> {
    static constexpr PluginKind kind = PluginKind::bootstrap;
    static constexpr std::uint16_t major = NPUSHMEM_BOOTSTRAP_MAJOR;
    static constexpr std::uint16_t minor = NPUSHMEM_BOOTSTRAP_MINOR;
    static constexpr std::size_t min_bytes = offsetof(npushmem_bootstrap_v1, abort);

    static std::string missing_function(const npushmem_bootstrap_v1& table);
    static std::string capability_conflict(const npushmem_bootstrap_v1& table);
    static void fill_defaults(npushmem_bootstrap_v1& table);
};

template <>
struct TableTraits<npushmem_collectives_v1> {
    static constexpr PluginKind kind = PluginKind::collectives;
    static constexpr std::uint16_t major = NPUSHMEM_COLLECTIVES_MAJOR;
    static constexpr std::uint16_t minor = NPUSHMEM_COLLECTIVES_MINOR;
    static constexpr std::size_t min_bytes = offsetof(npushmem_collectives_v1, abandon);

    static std::string missing_function(const npushmem_collectives_v1& table);
    static std::string capability_conflict(const npushmem_collectives_v1& table);
    static void fill_defaults(npushmem_collectives_v1& table);
};

// Returns the first error in the rows, or "": a pointer to unreadable memory, no name, a repeated name, an unknown
// type, or a default that does not parse.
std::string config_row_error(const npushmem_config_row* rows, std::uint32_t count);

// Returns "map, put, get" for a capability set; "none" for 0. Unknown bits are shown as numbers.
std::string capability_names(std::uint64_t capabilities);

}  // namespace npushmem
