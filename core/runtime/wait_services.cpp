#include "core/runtime/wait_services.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace npushmem {

namespace {

// The PEs that share cores with this one: those of the same machine and process space, whatever host they emulate.
HostOccupancy share_of(std::span<const PeRecord> records, const npushmem_host_id& here) {
    std::vector<CpuMask> masks;
    double quota = 0;
    for (const PeRecord& record : records) {
        if (record.host.machine != here.machine || record.host.space != here.space) continue;
        masks.push_back(record.affinity());
        quota = std::max(quota, record.cpu_quota);
    }
    return {usable_cores(masks, quota), static_cast<int>(masks.size())};
}

// Processes of other hosts are not visible from here.
std::vector<ProcessId> visible_processes(std::span<const PeRecord> records, const HostLayout& layout, int my_pe) {
    std::vector<ProcessId> processes(records.size());
    for (const int pe : layout.pes_of(layout.host_of(my_pe)))
        processes[static_cast<std::size_t>(pe)] = records[static_cast<std::size_t>(pe)].process_id();
    return processes;
}

}  // namespace

double max_pes_per_core(std::span<const PeRecord> records) {
    double max = 0;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (const PeRecord& record : records)
        if (seen.emplace(record.host.machine, record.host.space).second)
            max = std::max(max, share_of(records, record.host).pes_per_core());
    return max;
}

WaitServices::WaitServices(std::span<const PeRecord> records, const HostLayout& layout, int my_pe)
    : share(share_of(records, records[static_cast<std::size_t>(my_pe)].host)),
      budget(choose_wait_budget(share)),
      liveness(visible_processes(records, layout, my_pe)),
      transport_waiter(budget, os, counters, &liveness),
      driving_waiter(budget, os, counters, &liveness, &progress) {}

}  // namespace npushmem
