// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/address.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::array<npushmem_config_row, 7> rows{{
    {"BOOTSTRAP_UID_SESSION_ID", "", "string",
     "host:port of rank 0, for ranks started from plain shells without a unique id; rank 0 listens there. Anybody "
     "who knows it can join: set BOOTSTRAP_UID_SESSION_SECRET too if others share the network"},
    {"BOOTSTRAP_UID_SESSION_SECRET", "", "string", "password for BOOTSTRAP_UID_SESSION_ID, equal on all ranks"},
    {"BOOTSTRAP_UID_SOCK_IFNAME", "", "string",
     "network interfaces to use: name beginnings separated by commas; leading '=' for whole names, '^' for all but "
     "these"},
    {"BOOTSTRAP_UID_SOCK_FAMILY", "auto", "string", "address family: AF_INET, AF_INET6 or auto"},
    {"BOOTSTRAP_TIMEOUT", "60s", "duration", "time limit for a starting rank to wait for the others"},
    {"BOOTSTRAP_COLLECTIVE_TIMEOUT", "0", "duration",
     "how long start-up and finalize wait for a rank that has joined but does not come; 0: as BOOTSTRAP_TIMEOUT"},
    {"BOOTSTRAP_SHARED_MEMORY", "1", "bool",
     "ranks that all run on one host exchange data through shared memory; 0: they use TCP, as between hosts"},
}};

Status malformed(const char* name, const std::string& value, const char* accepted) {
    return {Code::config, fmt::format("NPUSHMEM_{}='{}' is malformed: {}", name, value, accepted)};
}

Result<Family> read_family(const Host& host) {
    constexpr const char* name = "BOOTSTRAP_UID_SOCK_FAMILY";
    const std::string value = host.config(name);
    auto family = parse_family(value);
    return family.ok() ? family : malformed(name, value, family.status().message().c_str());
}

Result<bool> read_shares_memory(const Host& host) {
    constexpr const char* name = "BOOTSTRAP_SHARED_MEMORY";
    const std::string value = host.config(name, "1");
    const auto parsed = parse_bool(value);
    return parsed.ok() ? parsed : Result<bool>(malformed(name, value, parsed.status().message().c_str()));
}

// The core checks the text.
int read_emulated_host(const Host& host) {
    const auto parsed = parse_integer(host.config("EMULATED_HOST", "-1"), -1, std::numeric_limits<int>::max());
    return parsed.ok() ? static_cast<int>(parsed.value()) : -1;
}

Result<Milliseconds> read_duration(const Host& host, const char* name, std::string_view otherwise) {
    constexpr Duration longest = std::chrono::years(10);  // its sum with a clock's time does not overflow
    const std::string value = host.config(name, otherwise);
    const auto parsed = parse_duration(value);
    if (!parsed.ok()) return malformed(name, value, parsed.status().message().c_str());
    return std::chrono::ceil<Milliseconds>(std::min(parsed.value(), longest));
}

}  // namespace

std::span<const npushmem_config_row> config_rows() { return rows; }

std::span<const npushmem_config_row> launched_config_rows() {
    constexpr std::size_t session_rows = 2;
    return std::span(rows).subspan(session_rows);
}

Result<Settings> Settings::read(const Host& host) {
    const auto family = read_family(host);
    if (!family.ok()) return family.status();
    const auto timeout = read_duration(host, "BOOTSTRAP_TIMEOUT", "60s");
    if (!timeout.ok()) return timeout.status();
    const auto collective = read_duration(host, "BOOTSTRAP_COLLECTIVE_TIMEOUT", "0");
    if (!collective.ok()) return collective.status();
    const auto shares_memory = read_shares_memory(host);
    if (!shares_memory.ok()) return shares_memory.status();
    if (timeout.value().count() == 0)
        return Status{Code::config, "NPUSHMEM_BOOTSTRAP_TIMEOUT is 0; the start of a job needs a time-out above 0"};
    return Settings{host.config("BOOTSTRAP_UID_SOCK_IFNAME"),
                    family.value(),
                    timeout.value(),
                    collective.value().count() > 0 ? collective.value() : timeout.value(),
                    host.config("BOOTSTRAP_UID_SESSION_ID"),
                    host.config("BOOTSTRAP_UID_SESSION_SECRET"),
                    shares_memory.value(),
                    read_emulated_host(host)};
}

Settings Settings::reporting_defaults(const Host& host) {
    return {"",
            Family::none,
            std::chrono::seconds(60),
            {},
            host.config("BOOTSTRAP_UID_SESSION_ID"),
            host.config("BOOTSTRAP_UID_SESSION_SECRET")};
}

Result<Address> Settings::local_address() const {
    return choose_local_address(interface_pattern, family, "NPUSHMEM_BOOTSTRAP_UID_SOCK_");
}

}  // namespace npushmem::rendezvous
