// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/static_variables.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "core/runtime/pe_table.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Uses memory of the test in place of an executable's variables.
alignas(4096) std::byte fake_variables[2 * 4096];

class StaticVariablesTest : public ::testing::Test {
protected:
    StaticVariablesTest() {
        image.begin = reinterpret_cast<std::uintptr_t>(fake_variables);
        image.bytes = sizeof fake_variables;
        image.segments = {{{0, sizeof fake_variables}, 4096}};
        image.identity = 0x1234;
        for (int pe = 0; pe < 3; ++pe) {
            records.pes.emplace_back().process = 100 + pe;
            records.common.emplace_back().statics = StaticVariables::record_of(settings, image);
        }
    }

    // PE 0's view.
    StaticVariables made() {
        pes = PeTable(records);
        return {image, pes, 0};
    }
    StaticVariables shared() {
        StaticVariables variables = made();
        auto created = HostMemory::create(variables.max_bytes() + 4096, 1, "");
        EXPECT_TRUE(created.ok());
        memory = std::make_unique<HostMemory>(std::move(created).value());
        EXPECT_TRUE(variables.share(*memory, 0, 4096).ok());
        return variables;
    }

    Settings settings;
    ProgramImage image;
    PeRecords records;
    PeTable pes;
    std::unique_ptr<HostMemory> memory;
};

TEST_F(StaticVariablesTest, AreSharedIfAllPesRunOneExecutable) {
    fake_variables[5] = std::byte{42};
    const StaticVariables variables = shared();
    EXPECT_TRUE(variables.same_on_all_pes());
    EXPECT_EQ(variables.max_bytes(), sizeof fake_variables);
    EXPECT_EQ(memory->slice(0)[4096 + 5], std::byte{42});
    EXPECT_TRUE(variables.holds(fake_variables + 5));
    EXPECT_FALSE(variables.holds(fake_variables + sizeof fake_variables));
    for (const int pe : {-1, 0, 2}) EXPECT_TRUE(variables.check("dest", fake_variables + 5, 8, pe).ok());
    EXPECT_EQ(variables.describe(), "8 KiB of the executable are symmetric");
    const Status beyond = variables.check("dest", fake_variables + 8190, 3, 1);
    EXPECT_EQ(beyond.code(), Code::range);
    EXPECT_THAT(beyond.message(), HasSubstr("which end 2 bytes after it"));
}

TEST_F(StaticVariablesTest, AreNotSharedWithAnotherExecutable) {
    records.common[2].statics.identity = 0x99;
    records.common[2].statics.bytes = 3 * 4096;
    const StaticVariables variables = shared();
    EXPECT_EQ(variables.max_bytes(), 3U * 4096) << "the most that any PE needs";
    EXPECT_TRUE(variables.shared());
    EXPECT_FALSE(variables.same_on_all_pes());
    EXPECT_TRUE(variables.check("dest", fake_variables, 8, 0).ok());
    EXPECT_TRUE(variables.check("dest", fake_variables, 8, 1).ok()) << "which runs the same";
    const Status other = variables.check("dest", fake_variables, 8, 2);
    EXPECT_EQ(other.code(), Code::not_symmetric);
    EXPECT_THAT(other.message(), AllOf(HasSubstr("PE 2 runs another executable"), HasSubstr("0000000000000099")));
    EXPECT_EQ(variables.check("dest", fake_variables, 8, -1).message(), other.message());
    EXPECT_EQ(variables.describe(), "8 KiB of the executable are symmetric, but not with PE 2: another executable");
}

TEST_F(StaticVariablesTest, OfAPeWhereTheyAreDisabledAreUnreachable) {
    settings.static_data = false;
    records.common[1].statics = StaticVariables::record_of(settings, image);
    const StaticVariables variables = shared();
    EXPECT_THAT(variables.check("source", fake_variables, 8, 1).message(),
                HasSubstr("those of PE 1 are not symmetric: NPUSHMEM_STATIC_DATA is 0"));
    EXPECT_TRUE(variables.check("source", fake_variables, 8, 2).ok());
}

TEST_F(StaticVariablesTest, TakeNoMemoryIfDisabled) {
    settings.static_data = false;
    for (auto& record : records.common) record.statics = StaticVariables::record_of(settings, image);
    const StaticVariables variables = shared();
    EXPECT_EQ(variables.max_bytes(), 0U);
    EXPECT_FALSE(variables.shared());
    EXPECT_FALSE(variables.holds(fake_variables));
    EXPECT_EQ(variables.describe(), "not symmetric: NPUSHMEM_STATIC_DATA is 0");
}

TEST_F(StaticVariablesTest, AreNotSharedIfPesAreThreads) {
    records.pes[0].process = records.pes[1].process;
    const StaticVariables variables = shared();
    EXPECT_FALSE(variables.shared()) << "they have one set of variables between them";
    EXPECT_EQ(variables.describe(), "not symmetric: it is a thread of a process that has several PEs");
}

TEST_F(StaticVariablesTest, AreAbsentInAProgramWithoutVariables) {
    EXPECT_EQ(StaticVariables::record_of(settings, ProgramImage{}).state, StaticVariablesRecord::no_variables);
    EXPECT_EQ(StaticVariables::record_of(settings, ProgramImage{}).bytes, 0U);
}

}  // namespace
}  // namespace npushmem
