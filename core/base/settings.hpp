// Every variable of the runtime as a typed value. Read once, then handed down as const.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/parse.hpp"

namespace npushmem {

struct Settings {
    // bootstrap
    std::string bootstrap;
    std::string bootstrap_pmi;
    std::string bootstrap_plugin;
    std::string uniqueid;
    std::int64_t pe = -1;
    std::int64_t npes = -1;
    std::int64_t emulated_host = -1;
    std::string launcher_fd;
    // transports
    std::string transports;
    bool disable_p2p = false;
    std::string remote_transport;
    std::string remote_order;
    std::string ib_enable_ibgda;  // auto, 0 or 1
    std::string plugin_path;
    // memory
    ByteCount symmetric_size;
    std::string heap_dir;
    bool static_data = true;
    // topology
    bool enable_nic_pe_mapping = false;
    std::string hca_list;
    std::string hca_pe_mapping;
    std::string nic_rails;
    std::string nic_policy;
    std::int64_t nics_per_pe = 0;
    bool nic_arbitration = true;
    std::int64_t device = -1;
    std::string topo_file;
    // waiting and collectives
    Duration timeout{};
    std::string barrier_algo;
    std::string coll_tuning_file;
    // emulated NPU
    std::int64_t npu_blocks = 0;
    std::int64_t npu_vector_cores = 0;
    bool npu_check = false;
    std::string npu_schedule;
    std::string npu_barrier;
    // reports
    bool check = false;
    bool info = false;
    bool version = false;
    bool stats = false;
    std::int64_t stats_every = 16;
    std::string on_error;
    std::string debug;
    std::string debug_subsys;
    std::string debug_file;
};

}  // namespace npushmem
