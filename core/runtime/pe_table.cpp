// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/pe_table.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace npushmem {

namespace {

// Returns for each PE whether another one runs in its process.
std::vector<bool> pes_with_shared_process(const PeRecords& records) {
    const auto key = [&records](std::uint32_t pe) {
        const PeRecord& own = records.pes[pe];
        const CommonRecord& common = records.common_of(pe);
        return std::tuple(common.host.machine, common.process_space, own.process, own.process_start);
    };
    std::vector<std::uint32_t> sorted(records.pes.size());
    std::iota(sorted.begin(), sorted.end(), 0U);
    if (!std::ranges::is_sorted(sorted, {}, key)) std::ranges::sort(sorted, {}, key);
    std::vector<bool> shared(records.pes.size());
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (key(sorted[i]) == key(sorted[i - 1])) shared[sorted[i]] = shared[sorted[i - 1]] = true;
    return shared;
}

}  // namespace

PeTable::PeTable(const PeRecords& records) : npes_(static_cast<int>(records.pes.size())) {
    const std::vector<bool> shares_process = pes_with_shared_process(records);
    const auto key_of = [&](std::size_t pe) {
        const CommonRecord& common = records.common_of(pe);
        return std::tuple(common.host.machine, common.host.space, common.host.emulated, common.host.user,
                          common.process_space, std::string_view(common.facts.host_name), common.statics.identity,
                          common.statics.bytes, common.statics.state, bool{shares_process[pe]});
    };
    std::map<decltype(key_of(0)), std::uint32_t> number_of;
    pes_.reserve(records.pes.size());
    for (std::size_t pe = 0; pe < records.pes.size(); ++pe) {
        const PeRecord& record = records.pes[pe];
        const auto [known, fresh] = number_of.try_emplace(key_of(pe), static_cast<std::uint32_t>(traits_.size()));
        const CommonRecord& common = records.common_of(pe);
        if (fresh)
            traits_.push_back(
                {common.host, common.process_space, common.facts.host_name, common.statics, bool{shares_process[pe]}});
        pes_.push_back({record.process, known->second, record.process_start});
    }
}

}  // namespace npushmem
