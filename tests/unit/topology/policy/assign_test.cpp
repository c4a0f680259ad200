// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/assign.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/fakes/machine_builder.hpp"
#include "tests/fakes/topologies.hpp"
#include "tests/unit/topology/policy/assign_fixture.hpp"
#include "topology/policy/assignment.hpp"

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(AssignByDistance, GivesEightPesEightNics) {
    const auto machine = machine_from("switch-pairs");
    auto nics = first_nics(assigned(machine, request_for(machine, 8)));
    std::sort(nics.begin(), nics.end());
    EXPECT_EQ(std::unique(nics.begin(), nics.end()), nics.end());
}

TEST(AssignByDistance, RefersToTheIndexOfTheOfferedRail) {
    const auto machine = machine_from("flat-vm");
    auto request = request_for(machine, 2);
    std::reverse(request.rails.begin(), request.rails.end());
    for (const auto& pe : assigned(machine, request).pes) {
        ASSERT_THAT(pe.nics, SizeIs(1));
        EXPECT_EQ(request.rails.at(pe.nics[0].rail).nic, pe.nics[0].nic);
        EXPECT_EQ(pe.nics[0].bits_per_second, 100'000'000'000u);
    }
}

TEST(AssignByDistance, NamesPesByTheirNumbersInTheJob) {
    const auto machine = machine_from("flat-vm");
    auto request = request_for(machine, 4);
    request.pe_numbers = {8, 9, 10, 11};
    const auto assignment = assigned(machine, request);
    EXPECT_EQ(assignment.pes[0].pe, 8u);
    EXPECT_THAT(assignment.pes[0].nics[0].shared_with, ElementsAre(10));
    EXPECT_THAT(assignment.pes[0].reason, HasSubstr("shared with PE 10"));
}

TEST(AssignByDistance, PrefersTheFasterOfEquallyNearPorts) {
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    builder.accelerator(host);
    builder.nic(host, "slow", {{1, PortState::active, 100}});
    builder.nic(host, "fast", {{1, PortState::active, 200}});
    auto request = request_for(builder.machine(), 1);
    request.max_nics_per_pe = 1;
    EXPECT_THAT(first_nics(assigned(builder.machine(), request)), ElementsAre("fast"));
}

TEST(AssignByDistance, LimitsTheRateOfAPortToThatOfItsSlot) {
    // By port rate the first would carry three of four PEs, but its slot is as slow as the second's.
    MachineBuilder builder;
    const auto host = builder.host_bridge(builder.package());
    for (int i = 0; i < 4; ++i) builder.accelerator(host);
    builder.nic(host, "hampered", {{1, PortState::active, 400'000'000'000}}, NicKind::rdma, 100'000'000'000);
    builder.nic(host, "plain", {{1, PortState::active, 100'000'000'000}}, NicKind::rdma, 100'000'000'000);
    const auto nics = first_nics(assigned(builder.machine(), request_for(builder.machine(), 4)));
    EXPECT_EQ(std::count(nics.begin(), nics.end(), "hampered"), 2);
}

TEST(AssignByDistance, TreatsANicAtAnUnknownPlaceAsFarAndReportsIt) {
    const auto machine = machine_from("flat-vm");
    auto request = request_for(machine, 1);
    request.rails = {{"stranger", 1, PortState::active, 0, {}}};
    const auto assignment = assigned(machine, request);
    EXPECT_EQ(assignment.pes[0].nics[0].distance, DistanceClass::sys);
    EXPECT_THAT(assignment.pes[0].reason, HasSubstr("at an unknown place"));
}

TEST(AssignWithoutNics, IsNoFailure) {
    const auto machine = machine_from("no-nic");
    const auto assignment = assigned(machine, request_for(machine, 2));
    ASSERT_THAT(assignment.pes, SizeIs(2));
    EXPECT_THAT(assignment.pes[0].nics, IsEmpty());
    EXPECT_EQ(assignment.pes[0].reason, "this host has no NIC");
}

TEST(AssignWithoutNics, DistinguishesAHostWithoutNicsFromTransportsWithoutNics) {
    const auto machine = machine_from("flat-vm");
    auto request = request_for(machine, 1);
    request.rails.clear();
    EXPECT_EQ(assigned(machine, request).pes[0].reason, "no transport in use offers a NIC");
}

TEST(AssignByList, LimitsTheChoiceByDistance) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 2);
    request.hca_list = "^mlx5_0";
    request.max_nics_per_pe = 1;
    EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_1", "mlx5_1"));
}

// Two pairs of NICs at switches; both NICs of a pair are equally near to two devices.
TEST(AssignByList, TheUsersOrderDecidesBetweenEquallyNear) {
    const auto machine = machine_from("switch-pairs");
    for (const Policy policy : {Policy::balanced, Policy::exclusive}) {
        auto request = request_for(machine, 3);
        request.policy = policy;
        request.max_nics_per_pe = 1;
        request.hca_list = "mlx5_3,mlx5_1,mlx5_0,mlx5_2";
        EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_1", "mlx5_0", "mlx5_3"));
        request.hca_list = "mlx5_2,mlx5_0,mlx5_3,mlx5_1";
        EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2"));
    }
    auto alone = request_for(machine, 1);
    alone.hca_list = "mlx5_1,mlx5_0";
    const auto assignment = assigned(machine, alone);
    ASSERT_THAT(assignment.pes[0].nics, SizeIs(2));
    EXPECT_EQ(assignment.pes[0].nics[0].nic, "mlx5_1");
}

// The user's order must not worsen class, load or rate.
TEST(AssignByList, TheUsersOrderDecidesNothingElse) {
    std::mt19937 random(5);
    for (const char* name : {"switch-pairs", "dgx-a100", "hgx-4-nics", "mixed-speeds", "nics-on-one-socket"}) {
        const auto machine = machine_from(name);
        const auto request = request_for(machine, 6);
        // The classes of all PEs, and the load that each finds on its NIC.
        const auto quality = [&](const AssignmentRequest& wanted) {
            std::multiset<std::tuple<DistanceClass, double>> out;
            std::map<std::string, double> users;
            for (const auto& pe : assigned(machine, wanted).pes) {
                const auto& nic = pe.nics[0];
                out.emplace(nic.distance, ++users[name_of(nic)] / static_cast<double>(nic.bits_per_second));
            }
            return out;
        };
        std::vector<std::string> nics;
        for (const Rail& rail : request.rails)
            if (rail.state != PortState::down) nics.push_back(name_of(rail));
        for (int round = 0; round < 20; ++round) {
            std::shuffle(nics.begin(), nics.end(), random);
            auto listed = request;
            listed.hca_list = fmt::format("{}", fmt::join(nics, ","));
            EXPECT_EQ(quality(listed), quality(request)) << name << ": " << listed.hca_list;
        }
    }
}

TEST(AssignByList, NvshmemsAlgorithmUsesTheMachinesOrder) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 1);
    request.policy = Policy::nearest;
    const auto expected = first_nics(assigned(machine, request));
    request.hca_list = "mlx5_3,mlx5_2,mlx5_1,mlx5_0";
    EXPECT_EQ(first_nics(assigned(machine, request)), expected);
}

TEST(AssignExtras, AreOfAPesNearestClassOnly) {
    // Two accelerators with NICs of their own, and as many NICs again for storage on the other socket.
    MachineBuilder builder;
    const auto compute = builder.package();
    const auto storage = builder.package();
    for (int i = 0; i < 2; ++i) {
        const auto host = builder.host_bridge(compute);
        builder.accelerator(host);
        builder.nic(host, "mlx5_" + std::to_string(i), {{1, PortState::active, 400'000'000'000}});
        builder.nic(builder.host_bridge(storage), "mlx5_" + std::to_string(i + 2), {{1, PortState::active, 0}});
    }
    for (const Policy policy : {Policy::balanced, Policy::exclusive}) {
        auto request = request_for(builder.machine(), 2);
        request.policy = policy;
        for (const auto& pe : assigned(builder.machine(), request).pes) {
            ASSERT_THAT(pe.nics, SizeIs(1)) << pe.reason;
            EXPECT_EQ(pe.nics[0].distance, DistanceClass::phb);
        }
    }
}

TEST(AssignByList, AssignsRoundRobinInTheUsersOrder) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 5);
    request.enable_nic_pe_mapping = true;
    request.hca_list = "mlx5_7,mlx5_0,mlx5_3";
    const auto assignment = assigned(machine, request);
    EXPECT_THAT(first_nics(assignment), ElementsAre("mlx5_7", "mlx5_0", "mlx5_3", "mlx5_7", "mlx5_0"));
    EXPECT_THAT(assignment.pes[0].reason,
                AllOf(HasSubstr("NPUSHMEM_HCA_LIST gives it, in turn, mlx5_7:1"), HasSubstr("shared with PE 3"),
                      HasSubstr("mlx5_0:1 (PIX) would be nearer")));
}

TEST(AssignByPolicy, RoundRobinIgnoresDistance) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 10);
    request.policy = Policy::round_robin;
    const auto assignment = assigned(machine, request);
    EXPECT_EQ(first_nics(assignment)[2], "mlx5_2");
    EXPECT_EQ(first_nics(assignment)[9], "mlx5_1");
    EXPECT_THAT(assignment.pes[9].reason, HasSubstr("NPUSHMEM_NIC_POLICY gives it, in turn, mlx5_1:1"));
}

TEST(AssignByPolicy, ListAssignsOneNicToEachPeInOrder) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 2);
    request.policy = Policy::list;
    request.hca_list = "mlx5_7,mlx5_3,mlx5_1";
    const auto assignment = assigned(machine, request);
    EXPECT_THAT(first_nics(assignment), ElementsAre("mlx5_7", "mlx5_3"));
    EXPECT_THAT(assignment.pes[1].reason, HasSubstr("NPUSHMEM_HCA_LIST gives PE 1 of the host mlx5_3:1"));
}

TEST(AssignByPolicy, ExclusiveSharesNothing) {
    const auto machine = machine_from("nics-on-one-socket");
    auto request = request_for(machine, 2);
    request.policy = Policy::exclusive;
    EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_0", "mlx5_1"));
}

TEST(AssignBesideOthers, PrefersNicsThatOtherJobsDoNotUse) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 1);
    request.max_nics_per_pe = 1;
    request.used_by_others = {1, 0, 0, 0, 0, 0, 0, 0};
    EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_1"));
    request.used_by_others = {2, 1, 0, 0, 0, 0, 0, 0};
    const auto crowded = assigned(machine, request);
    EXPECT_THAT(first_nics(crowded), ElementsAre("mlx5_1"));
    EXPECT_THAT(crowded.pes[0].reason, HasSubstr("shared with 1 PE of another job"));
}

TEST(AssignBesideOthers, RoundRobinUsesTheNumberOnTheHost) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 1);
    const std::vector<std::uint32_t> fifth{5};
    request.pes = place_emulated(machine, fifth);
    request.numbers_of_host = true;
    request.enable_nic_pe_mapping = true;
    EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_5"));
    request.hca_pe_mapping = "mlx5_0:1:3,mlx5_2:1:5";
    EXPECT_THAT(first_nics(assigned(machine, request)), ElementsAre("mlx5_2"));
}

TEST(AssignByTurns, DistributesMoreNicsThanPes) {
    const auto machine = machine_from("switch-pairs");
    auto request = request_for(machine, 3);
    request.enable_nic_pe_mapping = true;
    const auto assignment = assigned(machine, request);
    EXPECT_THAT(first_nics(assignment), ElementsAre("mlx5_0", "mlx5_2", "mlx5_5"));
    EXPECT_THAT(assignment.pes[0].nics, SizeIs(2));
    EXPECT_THAT(assignment.pes[1].nics, SizeIs(3));
    EXPECT_THAT(assignment.pes[2].nics, SizeIs(3));
}

TEST(AssignByMapping, AssignsAsTheUserConfigured) {
    const auto machine = machine_from("cascaded-switches");
    auto request = request_for(machine, 8);
    request.enable_nic_pe_mapping = true;
    request.hca_pe_mapping = "mlx5_0:1:3,mlx5_0:2:5";
    const auto assignment = assigned(machine, request);
    EXPECT_EQ(assignment.method, "HCA_PE_MAPPING");
    for (std::size_t pe = 0; pe < 8; ++pe) EXPECT_EQ(assignment.pes[pe].nics.at(0).port, pe < 3 ? 1u : 2u);
    EXPECT_THAT(assignment.pes[3].reason, HasSubstr("entry 2 \"mlx5_0:2:5\" of NPUSHMEM_HCA_PE_MAPPING"));
    EXPECT_THAT(assignment.pes[3].nics[0].shared_with, ElementsAre(4, 5, 6, 7));
}

TEST(AssignByMapping, WithoutTheSwitchIsNotedAndStillChecked) {
    const auto machine = machine_from("flat-vm");
    auto request = request_for(machine, 2);
    request.hca_pe_mapping = "mlx5_0:1:2";
    const auto assignment = assigned(machine, request);
    EXPECT_EQ(assignment.method, "balanced");
    EXPECT_THAT(assignment.notes, ElementsAre(HasSubstr("has no effect")));
    request.hca_pe_mapping = "mlx5_0";
    EXPECT_FALSE(assign(machine, request).ok());
}

void expect_refused(const Machine& machine, const AssignmentRequest& request, Code code, const std::string& why) {
    const auto out = assign(machine, request);
    ASSERT_FALSE(out.ok()) << why;
    EXPECT_EQ(out.status().code(), code);
    EXPECT_THAT(out.status().message(), HasSubstr(why));
}

TEST(Assign, RefusesWhatDoesNotFit) {
    const auto machine = machine_from("flat-vm");
    const auto sound = request_for(machine, 2);
    auto request = sound;
    request.enable_nic_pe_mapping = true;
    request.hca_list = "mlx5_0";
    request.hca_pe_mapping = "mlx5_0:1:2";
    expect_refused(machine, request, Code::config, "exclude each other");
    request = sound;
    request.hca_list = "mlx5_0,mlx5_7";
    expect_refused(machine, request, Code::config, "entry 2 \"mlx5_7\"");
    request = sound;
    request.enable_nic_pe_mapping = true;
    request.hca_pe_mapping = "mlx5_0:1:3";
    expect_refused(machine, request, Code::config, "add up to 3, but this host has 2 PEs");
    request.numbers_of_host = true;
    request.hca_pe_mapping = "mlx5_0:1:1";
    expect_refused(machine, request, Code::config, "so PE 1 of this host has no port");
    request = sound;
    request.policy = Policy::list;
    expect_refused(machine, request, Code::config, "needs NPUSHMEM_HCA_LIST");
    request.hca_list = "^mlx5_0";
    expect_refused(machine, request, Code::config, "needs NPUSHMEM_HCA_LIST");
    request.hca_list = "mlx5_0";
    expect_refused(machine, request, Code::config, "names 1 port, but NPUSHMEM_NIC_POLICY=list needs one for PE 1");
    request = sound;
    request.policy = Policy::exclusive;
    request.used_by_others = {1, 0};
    expect_refused(machine, request, Code::config, "of this host's 2 ports 1 is free: 1 is in use by other jobs");
    request.used_by_others = {0, 0};
    request.secondary_for_others = {true, false};
    expect_refused(machine, request, Code::config, "of this host's 2 ports 1 is free: 1 is in use by other jobs");
    request.hca_list = "mlx5_0";
    expect_refused(machine, request, Code::config,
                   "2 devices need a NIC port each, but of this host's 2 ports 0 are free: 1 is down or left out by "
                   "NPUSHMEM_HCA_LIST, 1 is in use by other jobs");
    request = request_for(machine, 3);
    request.policy = Policy::exclusive;
    expect_refused(machine, request, Code::config, "3 devices need a NIC port each, but this host has 2; start fewer");
    request = sound;
    request.used_by_others = {1};
    expect_refused(machine, request, Code::argument, "the load of 1 NIC ports was given for 2 ports");
    request = sound;
    request.max_nics_per_pe = 0;
    expect_refused(machine, request, Code::argument, "at least one");
    request = sound;
    request.pe_numbers = {1};
    expect_refused(machine, request, Code::argument, "1 PE numbers were given for 2 PEs");
    request = sound;
    for (auto& rail : request.rails) rail.state = PortState::down;
    expect_refused(machine, request, Code::system, "no NIC port of this host can be used");
}

TEST(Assign, RefusesAListOnAHostWithoutNic) {
    const auto machine = machine_from("no-nic");
    auto request = request_for(machine, 2);
    request.hca_list = "mlx5_0";
    expect_refused(machine, request, Code::config, "this host has no NIC");
    request = request_for(machine, 2);
    request.enable_nic_pe_mapping = true;
    request.hca_pe_mapping = "mlx5_0:1:2";
    expect_refused(machine, request, Code::config, "this host has no NIC");
}

TEST(Assign, AcceptsNoPes) {
    const auto machine = machine_from("flat-vm");
    EXPECT_THAT(assigned(machine, request_for(machine, 0)).pes, IsEmpty());
}

npushmem_device offered(const char* name, std::uint32_t port, std::uint32_t state) {
    npushmem_device out{};
    out.struct_size = sizeof out;
    out.port = port;
    out.state = state;
    std::copy_n(name, std::char_traits<char>::length(name), out.name);
    return out;
}

TEST(DeviceIndices, FindNicsAtAnyPositionInTheTransportsList) {
    const PeAssignment pe{
        0, "", {{"b", 2, 0, 0, DistanceClass::pix, 0, {}, 0}, {"a", 1, 1, 1, DistanceClass::pix, 0, {}, 0}}, ""};
    const npushmem_device devices[] = {offered("a", 1, NPUSHMEM_PORT_ACTIVE), offered("b", 1, NPUSHMEM_PORT_ACTIVE),
                                       offered("b", 2, NPUSHMEM_PORT_ACTIVE)};
    const auto indices = device_indices(pe, devices);
    ASSERT_TRUE(indices.ok()) << indices.status().message();
    EXPECT_THAT(indices.value(), ElementsAre(2, 0));
}

TEST(DeviceIndices, RejectANicThatIsMissingOrDown) {
    const PeAssignment pe{5, "", {{"b", 1, 0, 0, DistanceClass::pix, 0, {}, 0}}, ""};
    const npushmem_device down[] = {offered("b", 1, NPUSHMEM_PORT_DOWN)};
    for (const auto& devices : {std::span<const npushmem_device>{}, std::span<const npushmem_device>(down)}) {
        const auto indices = device_indices(pe, devices);
        ASSERT_FALSE(indices.ok());
        EXPECT_EQ(indices.status().code(), Code::system);
        EXPECT_THAT(indices.status().message(),
                    AllOf(HasSubstr("b:1"), HasSubstr("PE 5"), HasSubstr("NPUSHMEM_HCA_LIST=^b:1")));
    }
}

TEST(RequestFrom, TakesPolicyAndVariables) {
    Settings settings;
    settings.nic_policy = "nearest";
    settings.enable_nic_pe_mapping = true;
    settings.hca_list = "a";
    settings.hca_pe_mapping = "b:1:1";
    settings.nic_rails = "a=3";
    const auto request = request_from(settings, {DevicePlace{}}, {Rail{}, Rail{}});
    ASSERT_TRUE(request.ok()) << request.status().message();
    EXPECT_EQ(request.value().policy, Policy::nearest);
    EXPECT_TRUE(request.value().enable_nic_pe_mapping);
    EXPECT_EQ(request.value().hca_list, "a");
    EXPECT_EQ(request.value().hca_pe_mapping, "b:1:1");
    EXPECT_EQ(request.value().nic_rails, "a=3");
    EXPECT_EQ(request.value().pes.size(), 1u);
    EXPECT_EQ(request.value().rails.size(), 2u);
}

TEST(CheckNicVariables, ReportsMalformedEntries) {
    Settings settings;
    EXPECT_TRUE(check_nic_variables(settings).ok());
    settings.nic_rails = "mlx5_0=0,mlx5_1=x";
    EXPECT_THAT(check_nic_variables(settings).message(), HasSubstr("NPUSHMEM_NIC_RAILS entry 2 \"mlx5_1=x\""));
}

TEST(RequestFrom, NamesTheVariableOfAnUnknownPolicy) {
    Settings settings;
    settings.nic_policy = "best";
    const auto request = request_from(settings, {}, {});
    ASSERT_FALSE(request.ok());
    EXPECT_THAT(request.status().message(), HasSubstr("NPUSHMEM_NIC_POLICY"));
}

}  // namespace
}  // namespace npushmem::topology
