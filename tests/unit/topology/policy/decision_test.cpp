// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/decision.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/machine_builder.hpp"

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AssignmentRequest request_of(std::vector<Rail> rails) {
    AssignmentRequest request;
    request.rails = std::move(rails);
    return request;
}

TEST(UsableRails, OmitsAndReportsPortsThatAreDown) {
    const auto usable = usable_rails(request_of(
        {{"a", 1, PortState::active, 0, {}}, {"b", 1, PortState::down, 0, {}}, {"c", 1, PortState::unknown, 0, {}}}));
    ASSERT_TRUE(usable.ok());
    EXPECT_THAT(usable.value().rails, ElementsAre(0, 2));
    EXPECT_THAT(usable.value().notes, ElementsAre("b:1 is down and not used"));
}

TEST(UsableRails, FailsWhenNicsExistAndNoneWorks) {
    const auto usable = usable_rails(request_of({{"a", 1, PortState::down, 0, {}}, {"a", 2, PortState::down, 0, {}}}));
    ASSERT_FALSE(usable.ok());
    EXPECT_EQ(usable.status().code(), Code::system);
    EXPECT_THAT(usable.status().message(), AllOf(HasSubstr("a:1 down"), HasSubstr("a:2 down")));
}

TEST(UsableRails, AcceptsAHostWithoutNic) {
    const auto usable = usable_rails(request_of({}));
    ASSERT_TRUE(usable.ok());
    EXPECT_THAT(usable.value().rails, IsEmpty());
}

TEST(InMachineOrder, GoesByAddressThenNameThenPort) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    const auto low = builder.nic(host, "z");
    const auto high = builder.nic(host, "y");
    const std::vector<Rail> rails{{"n10", 1, {}, 0, {}},
                                  {"n2", 2, {}, 0, {}},
                                  {"n2", 1, {}, 0, {}},
                                  {"y", 1, {}, 0, {high, 0}},
                                  {"z", 1, {}, 0, {low, 0}}};
    EXPECT_THAT(in_machine_order(builder.machine(), rails, {0, 1, 2, 3, 4}), ElementsAre(4, 3, 2, 1, 0));
}

TEST(InMachineOrder, KeepsPesOfOnePlaceInTheirOrder) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    const auto a = builder.accelerator(host);
    const auto b = builder.accelerator(host);
    std::vector<DevicePlace> pes;
    for (const auto pci : {b, a, b, a}) pes.push_back({{pci, 0}, {}, ""});
    EXPECT_THAT(in_machine_order(builder.machine(), pes), ElementsAre(1, 3, 0, 2));
}

}  // namespace
}  // namespace npushmem::topology
