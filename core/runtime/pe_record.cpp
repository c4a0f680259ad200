#include "core/runtime/pe_record.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/os_facts.hpp"
#include "core/base/version.hpp"

namespace npushmem {

Result<PeRecord> make_pe_record(const Settings& settings, std::uint64_t tuning, const StaticVariablesRecord& statics) {
    auto host = host_identity(static_cast<int>(settings.emulated_host));
    if (!host.ok()) return host.status();
    PeRecord record;
    record.version[0] = library_version.major;
    record.version[1] = library_version.minor;
    record.version[2] = library_version.patch;
    record.process = getpid();
    record.process_start = this_process().start;
    record.host = host.value();
    record.symmetric_bytes = settings.symmetric_size.value;
    record.tuning = tuning;
    record.check = settings.check ? 1 : 0;
    record.statics = statics;
    (void)settings.barrier_algo.copy(record.barrier, sizeof record.barrier - 1);
    const CpuFacts cpus = read_cpu_facts();
    std::copy_n(cpus.affinity.begin(), std::min(cpus.affinity.size(), PeRecord::mask_words), record.cpu_mask);
    record.cpu_quota = cpus.quota;
    (void)host_name().copy(record.host_name, sizeof record.host_name - 1);
    return record;
}

namespace {

std::string version_text(const PeRecord& record) {
    return fmt::format("{}.{}.{}", record.version[0], record.version[1], record.version[2]);
}

std::string where(const PeRecord& record, std::size_t pe) {
    return fmt::format("PE {} (process {} on {})", pe, record.process, record.host_name);
}

}  // namespace

Status check_pe_records(std::span<const PeRecord> records, int my_pe) {
    const PeRecord& mine = records[static_cast<std::size_t>(my_pe)];
    for (std::size_t pe = 0; pe < records.size(); ++pe) {
        const PeRecord& other = records[pe];
        if (other.magic != mine.magic || other.bytes != mine.bytes)
            return {Code::mismatch, fmt::format("PE {} runs an incompatible npushmem (record of {} bytes, expected {})",
                                                pe, other.bytes, mine.bytes)};
        if (!std::equal(std::begin(other.version), std::end(other.version), std::begin(mine.version)))
            return {Code::mismatch, fmt::format("{} runs npushmem {}, PE {} runs {}; all PEs need the same",
                                                where(other, pe), version_text(other), my_pe, version_text(mine))};
        if (other.symmetric_bytes != mine.symmetric_bytes)
            return {Code::mismatch,
                    fmt::format("{} has NPUSHMEM_SYMMETRIC_SIZE={}, PE {} has {}; all PEs need the same",
                                where(other, pe), other.symmetric_bytes, my_pe, mine.symmetric_bytes)};
        if (std::string_view(other.barrier) != mine.barrier)
            return {Code::mismatch,
                    fmt::format("{} has NPUSHMEM_BARRIER_ALGO='{}', PE {} has '{}'; all PEs need the same",
                                where(other, pe), other.barrier, my_pe, mine.barrier)};
        if (other.check != mine.check)
            return {Code::mismatch, fmt::format("{} has NPUSHMEM_CHECK={}, PE {} has {}; all PEs need the same",
                                                where(other, pe), other.check, my_pe, mine.check)};
        if (other.tuning != mine.tuning)
            return {Code::mismatch,
                    fmt::format("{} reads another NPUSHMEM_COLL_TUNING_FILE than PE {}; all PEs need the "
                                "same text",
                                where(other, pe), my_pe)};
    }
    return {};
}

}  // namespace npushmem
