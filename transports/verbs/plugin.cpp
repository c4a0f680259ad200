// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"IB_GID_INDEX", "-1", "int",
     "index of the port's address, as rdma_gid_index or show_gids list it; -1: choose by version and family"},
    {"IB_ROCE_VERSION_NUM", "2", "uint", "RoCE version of the address, on Ethernet: 1 or 2"},
    {"IB_ADDR_FAMILY", "AF_INET", "string", "family of the address, on Ethernet: AF_INET or AF_INET6"},
    {"IB_ADDR_RANGE", "", "string",
     "range of the address, on Ethernet, such as 10.1.0.0/16 or 2001:db8::/32; replaces the family"},
    {"IB_SL", "0", "uint", "service level of packets, 0 to 15"},
    {"IB_TRAFFIC_CLASS", "0", "uint", "traffic class of packets, 0 to 255, by which RoCE networks assign priorities"},
    {"IB_PKEY", "0", "string", "partition key, 0x0001 to 0xffff; 0: the port's first key"},
    {"IB_MTU", "0", "uint", "maximum packet size in bytes: 256, 512, 1024, 2048 or 4096; 0: the port's maximum"},
    {"IB_RETRY_COUNT", "7", "uint",
     "number of retransmissions of an unacknowledged packet before the peer is lost, 0 to 7"},
    {"IB_TIMEOUT", "14", "uint", "wait for an acknowledgement: 4.096 us times two to this power; 14: 67 ms"},
    {"QP_DEPTH", "1024", "uint", "maximum number of requests in flight to one peer; each takes memory of the NIC"},
    {"DISABLE_IB_NATIVE_ATOMICS", "0", "bool", "the target's CPU carries out all atomics"},
    {"IB_NATIVE_ATOMICS", "auto", "string",
     "64-bit add and compare-and-swap by the NIC; auto: if it reports that they are atomic with the CPU's; always: on "
     "any "
     "NIC; then no PE of the target's host and no other operation may update the same words"},
    {"VERBS_REGISTER_CHUNK", "4M", "size",
     "unit in which memory is registered, and so locked, at its first use: a power of two from 4K"},
    {"VERBS_REGISTRATION_CACHE", "256M", "size",
     "maximum amount of the program's memory outside of the heap that stays registered, and so locked, for its next "
     "transfer; 0: none, as without userfaultfd"},
    {"VERBS_STRIPE_BYTES", "256K", "size",
     "minimum size of transfers that use all ports of the PE at once, a power of two from 4K; 0: never"},
    {"VERBS_PROGRESS_THREAD", "true", "bool",
     "a progress thread in each PE serves peers while the program computes; false: peers wait for the PE's next call"},
    {"VERBS_LANES", "16", "uint",
     "maximum number of queue pairs of a PE per peer, one per context; further contexts share them"},
    {"VERBS_PEER_TIMEOUT", "30s", "duration",
     "a peer that has been silent for this long is reported as lost; 0: never"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::VerbsTransport, "verbs",
                                      "peers of any host, over RDMA: InfiniBand or RoCE",
                                      npushmem::network::offered_capabilities | NPUSHMEM_CAP_DEVICES |
                                          NPUSHMEM_CAP_PINS,
                                      rows, std::size(rows));
