// Chooses the transport for PEs of other hosts when the user leaves it open (NPUSHMEM_REMOTE_TRANSPORT=auto): the first
// of NPUSHMEM_REMOTE_ORDER that every PE of the job can open.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/config.hpp"
#include "core/base/wait.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

struct RemoteTransportChoice {
    std::optional<OwnedTransport> transport;  // empty: no transport was chosen, for the reason in `explanation`
    std::string explanation;                  // for people
};

// Collective over a job of several hosts. `served` says that this PE's selection already has a transport for other
// hosts. `open` opens a transport by name. No PE gets a transport if the user of any PE made another choice.
Result<RemoteTransportChoice> choose_remote_transport(
    const Settings& settings, bool served, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open);

// How kernels operate on PEs that are not mapped: each core by itself, or through a proxy.
struct RemoteModeChoice {
    npu::RemoteMode mode;  // never `configured`
    std::string text;      // for people: the mode and the reason
};

// `ibgda` is NPUSHMEM_IB_ENABLE_IBGDA: auto, 0 or 1. `other_hosts` says that a transport that reaches other hosts
// serves some PE. A proxy that shares a CPU with the waiting core costs scheduler turns.
RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share);

}  // namespace npushmem
