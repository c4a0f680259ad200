#include "core/runtime/nic_choice.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Settings balanced() {
    Settings settings;
    settings.nic_policy = "balanced";
    return settings;
}

topology::Assignment chosen(const Settings& settings, const char* machine, const NicRequest& wanted) {
    auto choices = choose_nics(settings, topology::machine_from(machine), wanted, {});
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

TEST(ChooseNics, SharesOutEquallyNearNicsWhereThereAreMoreThanDevices) {
    topology::MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    builder.accelerator(host);
    for (const char* name : {"mlx5_0", "mlx5_1"}) builder.nic(host, name, {{1, topology::PortState::active, 0}});
    builder.nic(builder.host_bridge(builder.package()), "storage", {{1, topology::PortState::active, 0}});
    const auto choices = choose_nics(balanced(), builder.machine(), {{0}, {}, {}}, {});
    ASSERT_TRUE(choices.ok()) << choices.status().message();
    EXPECT_THAT(nics_of(choices.value().assignment.pes[0]), ElementsAre("mlx5_0", "mlx5_1"));
}

TEST(ChooseNics, LeavesNvshmemsAlgorithmItsOwnShare) {
    auto settings = balanced();
    settings.nic_policy = "nearest";
    EXPECT_THAT(chosen(settings, "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(2)) << "both of its switch";
    settings.nics_per_pe = 1;
    EXPECT_THAT(chosen(settings, "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(1));
}

TEST(ChooseNics, NumbersRailsAsConfigured) {
    auto settings = balanced();
    settings.nic_rails = "mlx5_1=9";
    const auto assignment = chosen(settings, "switch-pairs", {{0, 1}, {}, {}});
    EXPECT_EQ(assignment.pes[0].nics[0].rail_number, 0u);
    EXPECT_EQ(assignment.pes[1].nics[0].rail_number, 9u);
    settings.nic_rails = "mlx5_1=9,mlx5_8=1";
    EXPECT_THAT(choose_nics(settings, topology::machine_from("switch-pairs"), {{0}, {}, {}}, {}).status().message(),
                HasSubstr("NPUSHMEM_NIC_RAILS entry 2 \"mlx5_8=1\""));
}

TEST(ChooseNics, AssignsUpToTheConfiguredNumber) {
    auto settings = balanced();
    settings.nics_per_pe = 2;
    EXPECT_THAT(chosen(settings, "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(2));
    settings.nics_per_pe = 3;
    EXPECT_THAT(chosen(settings, "switch-pairs", {{0}, {}, {}}).pes[0].nics, SizeIs(2)) << "all of the nearest class";
}

TEST(ChooseNics, UsesTheDeviceThatAPeNames) {
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
