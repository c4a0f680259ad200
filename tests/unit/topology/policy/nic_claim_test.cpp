// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/nic_claim.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NicClaim one_claim() { return {{41, 900}, 5, 77, 3, 6, "0000:0f:00.0", "mlx5_2", 2, true, DistanceClass::pxb}; }

TEST(NicClaim, IsReadFromItsRow) {
    EXPECT_EQ(claim_from(to_row(one_claim())), one_claim());
    auto further = one_claim();
    further.first = false;
    further.nic = std::string(64, 'n');
    EXPECT_EQ(claim_from(to_row(further)), further);
}

TEST(NicClaim, RejectsOtherBytes) {
    EXPECT_FALSE(claim_from(HostTableRow{}));
    auto row = to_row(one_claim());
    row.payload[25] = std::byte{99};  // the distance class
    EXPECT_FALSE(claim_from(row));
}

TEST(ClaimsOfOthers, AreThoseOfOtherJobsOnTheSameMachine) {
    auto mine = one_claim();
    mine.job = 6;
    auto elsewhere = one_claim();
    elsewhere.machine = 78;
    const std::vector rows{to_row(one_claim()), to_row(mine), to_row(elsewhere), HostTableRow{}};
    EXPECT_THAT(claims_of_others(rows, 77, 6), ElementsAre(one_claim()));
}

TEST(MachineKey, DistinguishesMachinesAndEmulatedHosts) {
    Machine other;
    other.identity = 1;
    EXPECT_EQ(machine_key(Machine{}, -1), machine_key(Machine{}, -1));
    EXPECT_NE(machine_key(Machine{}, -1), machine_key(other, -1));
    EXPECT_NE(machine_key(Machine{}, 0), machine_key(Machine{}, 1));
}

TEST(UseOf, CountsFirstAndFurtherNics) {
    auto further = one_claim();
    further.first = false;
    further.port = 1;
    const std::vector claims{one_claim(), one_claim(), further};
    const std::vector<Rail> rails{{"mlx5_2", 1, {}, 0, {}}, {"mlx5_2", 2, {}, 0, {}}, {"mlx5_3", 2, {}, 0, {}}};
    const auto use = use_of(claims, rails);
    EXPECT_THAT(use.first_users, ElementsAre(0, 2, 0));
    EXPECT_THAT(use.further, ElementsAre(true, false, false));
}

TEST(NpuNumbers, AreTheLowestFreeOnes) {
    const std::vector<std::optional<std::uint32_t>> wanted{std::nullopt, 1, std::nullopt, std::nullopt};
    auto other = one_claim();
    other.number = 2;
    EXPECT_THAT(npu_numbers(wanted, std::vector{other}), ElementsAre(0, 1, 3, 4));
    EXPECT_THAT(npu_numbers({}, {}), IsEmpty());
}

TEST(NpuNumbers, MayBeSharedOnRequest) {
    const std::vector<std::optional<std::uint32_t>> wanted{6, 6};
    EXPECT_THAT(npu_numbers(wanted, std::vector{one_claim()}), ElementsAre(6, 6));
}

}  // namespace
}  // namespace npushmem::topology
