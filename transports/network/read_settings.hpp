// The settings that every network transport has, under its own prefix: <PREFIX>PROGRESS_THREAD, <PREFIX>PEER_TIMEOUT,
// <PREFIX>LANES.
#pragma once

#include <string>

#include "npushmem/plugin/host.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::network {

Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix);

}  // namespace npushmem::network
