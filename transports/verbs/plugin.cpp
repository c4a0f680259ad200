#include <iterator>

#include "npushmem/plugin/transport_export.hpp"
#include "transports/verbs/verbs_transport.hpp"

namespace {

constexpr npushmem_config_row rows[] = {
    {"IB_GID_INDEX", "-1", "int",
     "which of the port's addresses is used, as rdma_gid_index or show_gids list them; -1: by version and family"},
    {"IB_ROCE_VERSION_NUM", "2", "uint", "version of RoCE of the address, on Ethernet: 1 or 2"},
    {"IB_ADDR_FAMILY", "AF_INET", "string", "family of the address, on Ethernet: AF_INET or AF_INET6"},
    {"IB_ADDR_RANGE", "", "string",
     "range in which the address is, on Ethernet, such as 10.1.0.0/16 or 2001:db8::/32, in place of its family"},
    {"IB_SL", "0", "uint", "service level of what is sent, 0 to 15"},
    {"IB_TRAFFIC_CLASS", "0", "uint",
     "traffic class of what is sent, 0 to 255, by which RoCE networks tell it from other"},
    {"IB_PKEY", "0", "string", "partition key, 0x0001 to 0xffff; 0: the first of the port"},
    {"IB_MTU", "0", "uint", "bytes of a packet at most, 256, 512, 1024, 2048 or 4096; 0: what the port carries"},
    {"IB_RETRY_COUNT", "7", "uint", "how often what is not acknowledged is sent again before the peer is lost, 0 to 7"},
    {"IB_TIMEOUT", "14", "uint", "an acknowledgement is waited for 4.096 us times two to this power, 14: 67 ms"},
    {"QP_DEPTH", "1024", "uint", "requests to one peer that may be under way; each takes memory of the NIC"},
    {"DISABLE_IB_NATIVE_ATOMICS", "0", "bool", "atomics are always carried out by the target's CPU"},
    {"IB_NATIVE_ATOMICS", "auto", "string",
     "64-bit add and compare-and-swap by the NIC; auto: where it says that they are atomic with the CPU's; always: you "
     "know "
     "that nothing else, no PE of the target's host and no other operation, updates the words that they are used on"},
    {"VERBS_REGISTER_CHUNK", "4M", "size",
     "memory is registered, and so locked, in pieces of so many bytes, a power of two from 4K, when one is used for "
     "the first time"},
    {"VERBS_REGISTRATION_CACHE", "256M", "size",
     "so much of the program's memory outside of the heap stays registered, and so locked, for its next transfer; 0: "
     "none, "
     "as where userfaultfd is forbidden"},
    {"VERBS_STRIPE_BYTES", "256K", "size",
     "transfers of at least so many bytes go over all ports of the PE at once, a power of two from 4K; 0: none does"},
    {"VERBS_PROGRESS_THREAD", "true", "bool",
     "a thread of each PE serves peers while the program computes; without it they wait for the PE's next call"},
    {"VERBS_LANES", "16", "uint",
     "contexts of a PE that have a queue pair of their own for the same peer; more share them"},
    {"VERBS_PEER_TIMEOUT", "30s", "duration", "a peer of which nothing is heard for so long is lost; 0: never"},
};

}  // namespace

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(npushmem::VerbsTransport, "verbs",
                                      "peers of any host, over RDMA: InfiniBand or RoCE",
                                      NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC |
                                          NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_REMOTE | NPUSHMEM_CAP_DEVICES |
                                          NPUSHMEM_CAP_PINS,
                                      rows, std::size(rows));
