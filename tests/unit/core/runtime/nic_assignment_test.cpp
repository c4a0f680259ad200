// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/nic_assignment.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

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

// Several jobs of one host, in one process: each is a set of claims in the test's own table.
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NicClaimsTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "test-claims-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        place = {name, "nics"};
        settings.nic_policy = "balanced";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // A job of one PE, which is `process`.
    Result<NicClaims::Outcome> job(const ProcessId& process, std::optional<std::uint32_t> npu = std::nullopt) {
        const NicRequest wanted{{0}, {npu}, {}};
        return NicClaims::acquire(settings, machine, wanted, std::vector{process}, place);
    }
    static std::string first_nic(const NicClaims::Outcome& outcome) {
        return outcome.assignment.pes.at(0).nics.at(0).nic;
    }
    std::vector<topology::NicClaim> claims() const {
        return topology::claims_of_others(peek_host_tables(place), topology::machine_key(machine, -1), 0);
    }

    // Processes that do nothing until they are killed: the PEs of jobs.
    ProcessId sleeper() {
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::pause();
            ::_exit(0);
        }
        sleepers.push_back(pid);
        return identify_process(pid).value();
    }
    void end(const ProcessId& process) {
        ::kill(process.pid, SIGKILL);
        ASSERT_EQ(::waitpid(process.pid, nullptr, 0), process.pid);
        sleepers.erase(std::find(sleepers.begin(), sleepers.end(), process.pid));
    }
    ~NicClaimsTest() override {
        for (const pid_t pid : sleepers) {
            ::kill(pid, SIGKILL);
            (void)::waitpid(pid, nullptr, 0);
        }
    }

    Settings settings;
    topology::Machine machine = topology::machine_from("switch-pairs");
    HostTablePlace place;
    std::filesystem::path folder_;
    std::vector<pid_t> sleepers;
};

TEST_F(NicClaimsTest, EightJobsOfOnePeUseEightNicsByDistance) {
    std::vector<NicClaims::Outcome> jobs;
    std::set<std::string> nics;
    for (int i = 0; i < 8; ++i) {
        auto made = job(sleeper());
        ASSERT_TRUE(made.ok()) << made.status().message();
        EXPECT_EQ(made.value().warning, "");
        EXPECT_EQ(made.value().assignment.pes[0].nics[0].distance, topology::DistanceClass::pix);
        nics.insert(first_nic(made.value()));
        jobs.push_back(std::move(made).value());
    }
    EXPECT_THAT(nics, SizeIs(8));
    jobs.clear();
    EXPECT_THAT(claims(), IsEmpty());
    EXPECT_TRUE(std::filesystem::is_empty(place.folder));
}

TEST_F(NicClaimsTest, EightJobsOfOnePeUseEightNicsByVariable) {
    settings.enable_nic_pe_mapping = true;
    std::vector<NicClaims::Outcome> jobs;
    std::set<std::string> nics;
    for (int i = 0; i < 8; ++i) {
        jobs.push_back(job(sleeper()).value());
        nics.insert(first_nic(jobs.back()));
    }
    EXPECT_THAT(nics, SizeIs(8));
}

// Two modes of a program at the same time: one world per device, and one world of all.
TEST_F(NicClaimsTest, AJobOfEightBesideEightJobsOfOneSharesEveryNicOnce) {
    std::vector<NicClaims::Outcome> jobs;
    for (int i = 0; i < 8; ++i) jobs.push_back(job(sleeper()).value());
    NicRequest wanted;
    std::vector<ProcessId> processes;
    for (int pe = 0; pe < 8; ++pe) {
        wanted.pes.push_back(pe);
        wanted.npus.emplace_back(pe);
        processes.push_back(sleeper());
    }
    const auto all = NicClaims::acquire(settings, machine, wanted, processes, place);
    ASSERT_TRUE(all.ok()) << all.status().message();
    std::set<std::string> nics;
    for (const auto& pe : all.value().assignment.pes) {
        EXPECT_EQ(pe.nics.at(0).distance, topology::DistanceClass::pix);
        EXPECT_EQ(pe.nics.at(0).others, 1u);
        EXPECT_THAT(pe.reason, HasSubstr("shared with 1 PE of another job"));
        nics.insert(pe.nics.at(0).nic);
    }
    EXPECT_THAT(nics, SizeIs(8));
}

TEST_F(NicClaimsTest, JobsShareOneMappingByTheirDevices) {
    settings.enable_nic_pe_mapping = true;
    settings.hca_pe_mapping = "mlx5_3:1:1,mlx5_1:1:1";
    auto second = job(sleeper(), 1).value();
    auto first = job(sleeper(), 0).value();
    EXPECT_EQ(first_nic(first), "mlx5_3");
    EXPECT_EQ(first_nic(second), "mlx5_1");
    EXPECT_THAT(job(sleeper(), 2).status().message(), HasSubstr("PE 2 of this host has no port"));
}

TEST_F(NicClaimsTest, WithoutArbitrationJobsShareOneNic) {
    settings.nic_arbitration = false;
    const auto one = job(sleeper()).value();
    const auto two = job(sleeper()).value();
    EXPECT_EQ(first_nic(one), first_nic(two));
    EXPECT_THAT(one.assignment.notes, ElementsAre(HasSubstr("NPUSHMEM_NIC_ARBITRATION is off")));
    EXPECT_EQ(one.warning, "");
}

TEST_F(NicClaimsTest, ADeadJobReleasesItsNic) {
    const auto process = sleeper();
    auto lost = job(process).value();
    const auto nic = first_nic(lost);
    const auto lasting = job(sleeper()).value();
    EXPECT_NE(first_nic(lasting), nic);
    end(process);
    EXPECT_THAT(claims(), SizeIs(1));
    EXPECT_EQ(first_nic(job(sleeper()).value()), nic);
}

TEST_F(NicClaimsTest, AJobThatEndsNormallyReleasesItsNic) {
    std::string nic;
    {
        const auto ended = job(sleeper()).value();
        nic = first_nic(ended);
    }
    EXPECT_EQ(first_nic(job(sleeper()).value()), nic);
}

TEST_F(NicClaimsTest, AForkedCopyReleasesNothing) {
    auto made = job(sleeper()).value();
    const pid_t pid = ::fork();
    if (pid == 0) {
        { const NicClaims::Outcome copy = std::move(made); }
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_THAT(claims(), SizeIs(1));
}

TEST_F(NicClaimsTest, EmulatedHostsHaveNicsOfTheirOwn) {
    const auto here = job(sleeper()).value();
    settings.emulated_host = 3;
    EXPECT_EQ(first_nic(job(sleeper()).value()), first_nic(here));
}

TEST_F(NicClaimsTest, ExclusiveRefusesTheNinthJob) {
    settings.nic_policy = "exclusive";
    std::vector<NicClaims::Outcome> jobs;
    for (int i = 0; i < 8; ++i) jobs.push_back(job(sleeper()).value());
    const auto ninth = job(sleeper());
    EXPECT_EQ(ninth.status().code(), Code::config);
    EXPECT_THAT(ninth.status().message(), HasSubstr("8 are in use by other jobs"));
}

TEST_F(NicClaimsTest, AnUnusableTableIsReportedAndDoesNotStopTheJob) {
    place.folder += "/missing";
    const auto made = job(sleeper());
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_THAT(made.value().warning, HasSubstr("NPUSHMEM_NIC_ARBITRATION=0"));
    EXPECT_THAT(made.value().assignment.notes, ElementsAre(HasSubstr("other jobs on this host are not seen")));
}

}  // namespace

}  // namespace npushmem
