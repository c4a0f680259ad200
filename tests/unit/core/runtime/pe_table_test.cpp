// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/pe_table.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace npushmem {
namespace {

PeRecords sample_records(std::size_t npes) {
    PeRecords all{std::vector<PeRecord>(npes), std::vector<CommonRecord>(1)};
    for (std::size_t pe = 0; pe < npes; ++pe) {
        all.pes[pe].process = static_cast<std::int32_t>(100 + pe);
        all.pes[pe].process_start = 7000 + pe;
    }
    CommonRecord& common = all.common[0];
    std::strcpy(common.facts.host_name, "one");
    common.host = {1, 2, -1, 1000};
    common.process_space = 2;
    common.statics = {11, 4096, StaticVariablesRecord::shareable};
    return all;
}

TEST(PeTable, HoldsProcessAndTraitsOfEveryPe) {
    auto records = sample_records(4);
    records.common.resize(4, records.common[0]);
    records.common[2].host.machine = 9;
    std::strcpy(records.common[2].facts.host_name, "two");
    records.common[3].statics.identity = 12;
    const PeTable pes(records);
    ASSERT_EQ(pes.npes(), 4);
    for (int pe = 0; pe < 4; ++pe) {
        EXPECT_EQ(pes.process(pe), (ProcessId{100 + pe, 7000 + static_cast<std::uint64_t>(pe)})) << pe;
        EXPECT_EQ(pes.traits(pe).host_name, pe == 2 ? "two" : "one") << pe;
        EXPECT_EQ(pes.traits(pe).host.machine, pe == 2 ? 9U : 1U) << pe;
        EXPECT_EQ(pes.traits(pe).statics.identity, pe == 3 ? 12U : 11U) << pe;
        EXPECT_EQ(pes.traits(0).sees_process_of(pes.traits(pe)), pe != 2) << pe;
    }
    EXPECT_EQ(&pes.traits(0), &pes.traits(1)) << "equal traits are kept once";
}

TEST(PeTable, UsesACopyOfItsEntries) {
    PeTable pes(sample_records(4));
    EXPECT_EQ(pes.view().size(), 4 * 16U);
    const PeTable other(sample_records(4));
    pes.use_copy(other.view());
    EXPECT_EQ(pes.view().data(), other.view().data());
    EXPECT_EQ(pes.npes(), 4);
    EXPECT_EQ(pes.process(3).pid, 103);
    EXPECT_EQ(pes.traits(3).host_name, "one");
}

TEST(PeTable, FindsPesOfOneProcess) {
    auto records = sample_records(5);
    records.pes[4].process = records.pes[1].process;
    records.pes[4].process_start = records.pes[1].process_start;
    records.pes[3].process = records.pes[0].process;  // of another start: the number was reused
    const PeTable pes(records);
    for (int pe = 0; pe < 5; ++pe) EXPECT_EQ(pes.traits(pe).shares_process, pe == 1 || pe == 4) << pe;
    // Equal numbers in different PID namespaces are different processes.
    records.common.resize(5, records.common[0]);
    records.common[4].process_space = 3;
    EXPECT_FALSE(PeTable(records).traits(1).shares_process);
}

}  // namespace
}  // namespace npushmem
