// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/pe_table.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace npushmem {

namespace {

auto process_of(const PeRecord& record) {
    return std::tuple(record.host.machine, record.process_space, record.process, record.process_start);
}

// Returns for each PE whether another one runs in its process.
std::vector<bool> pes_with_shared_process(std::span<const PeRecord> records) {
    std::vector<const PeRecord*> sorted;
    sorted.reserve(records.size());
    for (const PeRecord& record : records) sorted.push_back(&record);
    const auto key = [](const PeRecord* record) { return process_of(*record); };
    if (!std::ranges::is_sorted(sorted, {}, key)) std::ranges::sort(sorted, {}, key);
    std::vector<bool> shared(records.size());
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (key(sorted[i]) == key(sorted[i - 1]))
            for (const PeRecord* each : {sorted[i], sorted[i - 1]})
                shared[static_cast<std::size_t>(each - records.data())] = true;
    return shared;
}

}  // namespace

PeTable::PeTable(const PeRecords& records) : npes_(static_cast<int>(records.pes.size())) {
    const std::vector<bool> shares_process = pes_with_shared_process(records.pes);
    const auto key_of = [&](std::size_t pe) {
        const PeRecord& record = records.pes[pe];
        return std::tuple(record.host.machine, record.host.space, record.host.emulated, record.host.user,
                          record.process_space, std::string_view(records.facts_of(pe).host_name),
                          record.statics.identity, record.statics.bytes, record.statics.state,
                          bool{shares_process[pe]});
    };
    std::map<decltype(key_of(0)), std::uint32_t> number_of;
    pes_.reserve(records.pes.size());
    for (std::size_t pe = 0; pe < records.pes.size(); ++pe) {
        const PeRecord& record = records.pes[pe];
        const auto [known, fresh] = number_of.try_emplace(key_of(pe), static_cast<std::uint32_t>(traits_.size()));
        if (fresh)
            traits_.push_back({record.host, record.process_space, records.facts_of(pe).host_name, record.statics,
                               bool{shares_process[pe]}});
        pes_.push_back({record.process, known->second, record.process_start});
    }
}

}  // namespace npushmem
