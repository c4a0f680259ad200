// Who carries out what kernels do to PEs that are not mapped.
#pragma once

#include <string>
#include <string_view>

#include "core/base/wait_budget.hpp"
#include "npushmem/npu/fabric.hpp"

namespace npushmem {

struct RemoteModeChoice {
    npu::RemoteMode mode;  // not `configured`
    std::string text;      // for people: which, and why
};

// `ibgda`: of NPUSHMEM_IB_ENABLE_IBGDA, auto, 0 or 1. `other_hosts`: some PE is reached by a transport that reaches
// other hosts. A proxy that must share a CPU with the core that waits for it costs turns of the scheduler.
RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share);

}  // namespace npushmem
