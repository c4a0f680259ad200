#include "core/runtime/remote_mode.hpp"

#include <fmt/format.h>

namespace npushmem {

RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share) {
    if (!other_hosts)
        return {npu::RemoteMode::direct, "direct to PEs that are not mapped (their transports work within a host)"};
    const bool automatic = ibgda == "auto";
    const bool room = 2 * share.pes <= share.cores;
    const bool proxied = automatic ? room : ibgda == "0";
    const std::string why = automatic ? fmt::format("; auto: {} PEs with a proxy each {} {:g} CPUs", share.pes,
                                                    room ? "have room on" : "would share", share.cores)
                                      : std::string();
    const std::string by = fmt::format("(NPUSHMEM_IB_ENABLE_IBGDA={}{})", ibgda, why);
    if (proxied) return {npu::RemoteMode::proxy, "by a proxy thread to PEs that are not mapped " + by};
    return {npu::RemoteMode::direct, "direct to PEs that are not mapped, each core by itself " + by};
}

}  // namespace npushmem
