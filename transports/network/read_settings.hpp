// The settings that every network transport has, under its own prefix: <PREFIX>PROGRESS_THREAD, <PREFIX>PEER_TIMEOUT,
// <PREFIX>LANES;
// and of those whose library has atomics of its own: <PREFIX>NATIVE_ATOMICS.
#pragma once

#include <string>

#include "npushmem/plugin/host.hpp"
#include "transports/network/network_transport.hpp"

namespace npushmem::network {

Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix);
// True: always. Auto means no: no such library says that its atomics are atomic with those of the target's CPU.
Result<bool> read_native_atomics(const Host& host, const std::string& prefix);

}  // namespace npushmem::network
