// What every PE tells every other before anything else: plain bytes through the bootstrap, equal layout on all PEs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/cpu_facts.hpp"
#include "core/base/process_liveness.hpp"
#include "core/base/settings.hpp"
#include "core/runtime/static_variables.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

struct PeRecord {
    static constexpr std::uint32_t magic_value = 0x4e505245;  // "NPRE"
    static constexpr std::size_t mask_words = 16;             // affinity of up to 1,024 CPUs

    std::uint32_t magic = magic_value;
    std::uint32_t bytes = sizeof(PeRecord);
    std::int32_t version[3] = {};
    std::int32_t process = 0;
    std::uint64_t process_start = 0;
    npushmem_host_id host{};
    std::uint64_t symmetric_bytes = 0;
    std::uint64_t tuning = 0;  // hash of the decision file
    char barrier[40] = {};     // NPUSHMEM_BARRIER_ALGO, as far as it fits
    std::uint64_t cpu_mask[mask_words] = {};
    double cpu_quota = 0;
    std::uint64_t check = 0;  // NPUSHMEM_CHECK
    char host_name[64] = {};
    StaticVariablesRecord statics;

    [[nodiscard]] ProcessId process_id() const { return {process, process_start}; }
    [[nodiscard]] CpuMask affinity() const { return {cpu_mask, cpu_mask + mask_words}; }
};

// Of this process. `tuning`: of its decision file.
Result<PeRecord> make_pe_record(const Settings& settings, std::uint64_t tuning, const StaticVariablesRecord& statics);

// Same library, same heap size, same way to choose a barrier, same record on all PEs? The error names the first PE that
// differs and both values.
Status check_pe_records(std::span<const PeRecord> records, int my_pe);

}  // namespace npushmem
