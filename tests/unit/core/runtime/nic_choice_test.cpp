#include "core/runtime/nic_choice.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/fakes/topologies.hpp"

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Settings balanced() {
    Settings settings;
    settings.nic_policy = "balanced";
    return settings;
}

topology::Assignment chosen(const Settings& settings, const char* machine, const NicDemand& demand) {
    auto choices = choose_nics(settings, topology::machine_from(machine), demand, {});
    EXPECT_TRUE(choices.ok()) << choices.status().message();
    return choices.ok() ? std::move(choices.value().assignment) : topology::Assignment{};
}

std::vector<std::string> nics_of(const topology::PeAssignment& pe) {
    std::vector<std::string> out;
    for (const auto& nic : pe.nics) out.push_back(nic.nic);
    return out;
}

npushmem_device offered(const char* name) {
    npushmem_device out{};
    out.struct_size = sizeof out;
    out.port = 1;
    out.state = NPUSHMEM_PORT_ACTIVE;
    std::memcpy(out.name, name, std::strlen(name));
    return out;
}

TEST(ChooseNics, LeavesTheNicsOfIdleAcceleratorsToThem) {
    EXPECT_THAT(chosen(balanced(), "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(1));
}

TEST(ChooseNics, SharesOutAllWhereThereAreMoreNicsThanDevices) {
    EXPECT_THAT(chosen(balanced(), "network-only", {{0}, {}, {}}).pes[0].nics, SizeIs(2));
}

TEST(ChooseNics, GivesAsManyAsTheUserAllows) {
    auto settings = balanced();
    settings.nics_per_pe = 3;
    EXPECT_THAT(chosen(settings, "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(3));
}

TEST(ChooseNics, GoesByTheDeviceThatAPeNames) {
    const auto assignment = chosen(balanced(), "dgx-h100", {{4, 5}, {6, 2}, {}});
    EXPECT_THAT(nics_of(assignment.pes[0]), ElementsAre("mlx5_6"));
    EXPECT_THAT(nics_of(assignment.pes[1]), ElementsAre("mlx5_2"));
    EXPECT_EQ(assignment.pes[0].pe, 4u);
}

TEST(ChooseNics, NumbersRailsInTheMachinesOrder) {
    const std::vector devices{offered("mlx5_1"), offered("mlx5_0")};
    const auto assignment = chosen(balanced(), "dgx-h100", {{0}, {}, devices});
    EXPECT_THAT(nics_of(assignment.pes[0]), ElementsAre("mlx5_0"));
    EXPECT_EQ(assignment.pes[0].nics[0].rail, 0u);
}

}  // namespace
}  // namespace npushmem
