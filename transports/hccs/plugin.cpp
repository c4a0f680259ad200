// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/hccs/hccs_transport.hpp"

namespace {

using namespace npushmem::hccs;

constexpr npushmem_config_row rows[] = {
    {"HCCS_LINKS", "auto", "string",
     "groups of fully linked NPUs, such as 0-7,8-15, or mesh:8 for groups of eight; a switch joins the groups; "
     "auto: annotation NpushmemHccs of NPUSHMEM_TOPO_FILE, else mesh:8"},
    {"HCCS_ENGINES", default_engines, "uint",
     "number of DMA engines of an NPU, 1 to 64; they are unordered among each other"},
    {"HCCS_DEPTH", default_depth, "uint", "capacity of one engine's queue, in transfers"},
    {"HCCS_TIMED", "false", "bool",
     "transfers take the time that the links need; then no peer's memory is mapped, so that every access is timed"},
    {"HCCS_BANDWIDTH", default_bandwidth, "size", "bytes per second and direction of a direct link"},
    {"HCCS_LATENCY", default_latency, "duration", "latency of a direct link"},
    {"HCCS_SWITCH_BANDWIDTH", default_bandwidth, "size",
     "bytes per second and direction of an NPU's port to the switch"},
    {"HCCS_SWITCH_LATENCY", default_switch_latency, "duration", "latency through the switch"},
    {"HCCS_FAIL", "", "list",
     "failed links, by NPU numbers: 0-1 is down from the start, 0-1@100 fails after a PE's 100th transfer over it"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::HccsTransport, "hccs",
                                      "NPUs of one server: mapped memory, and DMA engines over emulated links",
                                      npushmem::mapped_capabilities, rows, std::size(rows));
