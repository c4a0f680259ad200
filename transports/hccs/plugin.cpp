#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/hccs/hccs_transport.hpp"

namespace {

using namespace npushmem::hccs;

constexpr npushmem_config_row rows[] = {
    {"HCCS_LINKS", "auto", "string",
     "groups of NPUs that are fully linked, as 0-7,8-15 or mesh:8 for groups of eight; a switch joins the groups; "
     "auto: "
     "annotation NpushmemHccs of NPUSHMEM_TOPO_FILE, else mesh:8"},
    {"HCCS_ENGINES", default_engines, "uint", "DMA engines of an NPU, 1 to 64; unordered among each other"},
    {"HCCS_DEPTH", default_depth, "uint", "transfers that one engine's queue has room for"},
    {"HCCS_TIMED", "false", "bool",
     "transfers take as long as the links need; then no peer's memory is mapped, so that every access is timed"},
    {"HCCS_BANDWIDTH", default_bandwidth, "size", "bytes per second of a direct link, each direction"},
    {"HCCS_LATENCY", default_latency, "duration", "of a direct link"},
    {"HCCS_SWITCH_BANDWIDTH", default_bandwidth, "size",
     "bytes per second of an NPU's port to the switch, each direction"},
    {"HCCS_SWITCH_LATENCY", default_switch_latency, "duration", "of the way through the switch"},
    {"HCCS_FAIL", "", "list",
     "links that are down, as 0-1 by the NPUs' numbers, or fail after a PE's 100th transfer over them, as 0-1@100"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::HccsTransport, "hccs",
                                      "NPUs of one server: mapped memory, and DMA engines over emulated links",
                                      npushmem::mapped_capabilities, rows, std::size(rows));
