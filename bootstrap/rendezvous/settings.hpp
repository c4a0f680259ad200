// The plugin's configuration rows, and their values read once.
#pragma once

#include <span>
#include <string>

#include "bootstrap/rendezvous/address.hpp"
#include "bootstrap/rendezvous/deadline.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::rendezvous {

// Of the plugin uid; and without what only it has, for plugins that get their ids from a launcher.
std::span<const npushmem_config_row> config_rows();
std::span<const npushmem_config_row> launched_config_rows();

struct Settings {
    std::string interface_pattern;
    Family family = Family::none;
    Milliseconds timeout{};             // until all ranks have joined and met
    Milliseconds collective_timeout{};  // of each collective after
    std::string session;                // host:port, or empty
    std::string session_secret;

    static Result<Settings> read(const Host& host);
    // For a rank whose variables are malformed, and that comes to say so: the session, and what is read where nothing
    // is set.
    static Settings reporting_defaults(const Host& host);
    // The address that the interface rows choose, port 0.
    [[nodiscard]] Result<Address> local_address() const;
};

}  // namespace npushmem::rendezvous
