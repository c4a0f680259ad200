// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/discovery.hpp"

#include <gmock/gmock.h>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "tests/fakes/topologies.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(DiscoverFromXml, ReadsProcessors) {
    const auto machine = machine_from("nics-on-one-socket");
    EXPECT_EQ(machine.host_name, "nics-on-one-socket");
    ASSERT_THAT(machine.packages, SizeIs(2));
    EXPECT_EQ(machine.packages[1].model, "Synthetic CPU");
    ASSERT_THAT(machine.numa_nodes, SizeIs(2));
    EXPECT_THAT(machine.numa_nodes[1].cpus, ElementsAre(4, 5, 6, 7));
    EXPECT_EQ(machine.numa_nodes[1].memory_bytes, std::uint64_t{64} << 30);
    EXPECT_EQ(machine.numa_nodes[1].package, 1u);
    ASSERT_THAT(machine.cores, SizeIs(4));
    EXPECT_THAT(machine.cores[3].cpus, ElementsAre(5, 7));
    EXPECT_EQ(machine.cores[3].numa, 1u);
    EXPECT_EQ(cpu_count(machine), 8u);
    EXPECT_THAT(machine.numa_distances, ElementsAre(ElementsAre(10, 21), ElementsAre(21, 10)));
}

TEST(DiscoverFromXml, ReadsThePciForestWithParentsFirst) {
    const auto machine = machine_from("switch-pairs");
    std::size_t host_bridges = 0;
    for (std::size_t i = 0; i < machine.pci.size(); ++i) {
        const auto& object = machine.pci[i];
        if (object.kind == PciKind::host_bridge) ++host_bridges;
        EXPECT_EQ(object.parent.has_value(), object.kind != PciKind::host_bridge) << object.address;
        EXPECT_TRUE(!object.parent || *object.parent < i) << object.address;
    }
    EXPECT_EQ(host_bridges, 4u);
    EXPECT_THAT(machine.accelerators, SizeIs(8));
    const auto device = find_pci(machine, "0000:83:00.0");
    ASSERT_TRUE(device);
    EXPECT_EQ(machine.pci[*device].numa, 1u);
    EXPECT_EQ(machine.pci[*device].class_id, 0x1200);
    EXPECT_EQ(machine.pci[*device].link_bits_per_second, 256'000'000'000u);
}

TEST(DiscoverFromXml, ReadsPortsWithStateAndRate) {
    const auto machine = machine_from("cascaded-switches");
    ASSERT_THAT(machine.nics, SizeIs(2));
    EXPECT_EQ(machine.nics[0].name, "mlx5_0");
    EXPECT_EQ(machine.nics[0].kind, NicKind::rdma);
    ASSERT_THAT(machine.nics[0].ports, SizeIs(2));
    EXPECT_EQ(machine.nics[0].ports[1].number, 2u);
    EXPECT_EQ(machine.nics[0].ports[1].state, PortState::active);
    EXPECT_EQ(machine.nics[0].ports[1].bits_per_second, 100'000'000'000u);
    EXPECT_EQ(machine_from("port-down").nics[1].ports[0].state, PortState::down);
}

TEST(DiscoverFromXml, DistinguishesNetworkInterfacesFromRdmaDevices) {
    const auto machine = machine_from("network-only");
    ASSERT_THAT(machine.nics, SizeIs(2));
    EXPECT_EQ(machine.nics[0].kind, NicKind::network);
    EXPECT_EQ(machine.nics[0].ports[0].state, PortState::unknown);
}

TEST(DiscoverFromXml, ReadsCaches) {
    const auto machine = machine_from("nics-on-one-socket");
    ASSERT_THAT(machine.caches, SizeIs(2));
    EXPECT_EQ(machine.caches[1].level, 3u);
    EXPECT_EQ(machine.caches[1].bytes, std::uint64_t{32} << 20);
    EXPECT_THAT(machine.caches[1].cpus, ElementsAre(4, 5, 6, 7));
}

TEST(DiscoverFromXml, ReadsTheNumaNodeOfDevicesInAPackageWithSeveral) {
    const auto machine = machine_from("dgx-a100");
    ASSERT_THAT(machine.numa_nodes, SizeIs(8));
    const auto device = find_pci(machine, "0000:13:00.0");
    ASSERT_TRUE(device);
    EXPECT_EQ(machine.pci[*device].numa, 3u);
}

TEST(DiscoverFromXml, PlacesEmulatedNpusWhereAnnotationsSay) {
    const auto machine = machine_from("npus-by-file");
    ASSERT_THAT(machine.npu_sites, SizeIs(3));
    EXPECT_EQ(machine.pci[machine.npu_sites[0].pci.value()].address, "0000:20:00.0");
    EXPECT_EQ(machine.pci[machine.npu_sites[1].pci.value()].address, "0000:[10-12]");
    EXPECT_EQ(machine.npu_sites[2].pci, machine.npu_sites[1].pci);
}

TEST(DiscoverFromXml, NamesAMissingFile) {
    const auto machine = discover_from_xml("/nonexistent/machine.xml");
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.status().code(), Code::config);
    EXPECT_THAT(machine.status().message(), AllOf(HasSubstr("/nonexistent/machine.xml"), HasSubstr("No such file")));
}

TEST(DiscoverFromXml, RefusesADirectory) {
    const auto machine = discover_from_xml(NPUSHMEM_TEST_DATA_DIR);
    ASSERT_FALSE(machine.ok());
    EXPECT_THAT(machine.status().message(), HasSubstr("is a directory"));
}

class OwnFile : public ::testing::Test {
protected:
    // Contains the process ID, because tests run in parallel.
    const std::string path_ = ::testing::TempDir() + "npushmem_wrong_topology_" + std::to_string(::getpid()) + ".xml";
    void TearDown() override { std::filesystem::remove(path_); }
};

class WrongFile : public OwnFile, public ::testing::WithParamInterface<const char*> {};

TEST_P(WrongFile, IsRefusedWithTheRemedy) {
    std::ofstream(path_) << GetParam();
    const auto machine = discover_from_xml(path_);
    ASSERT_FALSE(machine.ok());
    EXPECT_EQ(machine.status().code(), Code::config);
    EXPECT_THAT(machine.status().message(), AllOf(HasSubstr(path_), HasSubstr("lstopo")));
}

INSTANTIATE_TEST_SUITE_P(
    Contents, WrongFile,
    ::testing::Values("", "hello", "<?xml version=\"1.0\"?>\n<html></html>\n",
                      "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n</topology>\n",
                      "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n  <object type=\"Mach"));

class EditedFile : public OwnFile {
protected:
    // Copies a file of tests/data and replaces one text in it.
    void edit(const std::string& name, const std::string& from, const std::string& to) const {
        std::ifstream file(topology_path(name));
        std::string text{std::istreambuf_iterator<char>(file), {}};
        const auto at = text.find(from);
        ASSERT_NE(at, std::string::npos);
        std::ofstream(path_) << text.replace(at, from.size(), to);
    }
    void expect_refused(const std::string& why) const {
        const auto machine = discover_from_xml(path_);
        ASSERT_FALSE(machine.ok());
        EXPECT_EQ(machine.status().code(), Code::config);
        EXPECT_THAT(machine.status().message(), AllOf(HasSubstr(path_), HasSubstr(why)));
    }
};

TEST_F(EditedFile, WithAWrongAnnotationIsRefused) {
    edit("flat-vm.xml", "name=\"Port1Rate\" value=\"100\"", "name=\"Port1Rate\" value=\"fast\"");
    expect_refused("NIC mlx5_0: Port1Rate: \"fast\" is not a number of gigabits per second");
    edit("flat-vm.xml", "name=\"Port1State\" value=\"4\"", "name=\"Port1State\" value=\"up\"");
    expect_refused("NIC mlx5_0: Port1State: \"up\" is not a port state number");
    edit("npus-by-file.xml", "value=\"1,2\"", "value=\"1,0\"");
    expect_refused("NpushmemNpus: NPU 0 is placed twice");
    edit("npus-by-file.xml", "value=\"1,2\"", "value=\"2,3\"");
    expect_refused("NPU 2 is placed, but not NPU 1");
}

TEST_F(EditedFile, ASavedMachineIsReadAsItWas) {
    for (const char* name : {"switch-pairs", "dgx-a100", "npus-by-file", "port-down", "network-only", "no-nic"}) {
        auto before = machine_from(name);
        const auto saved = save_machine(topology_path(std::string(name) + ".xml"), path_);
        ASSERT_TRUE(saved.ok()) << saved.message();
        auto after = discover_from_xml(path_);
        ASSERT_TRUE(after.ok()) << after.status().message();
        after.value().source = before.source;
        EXPECT_EQ(describe(after.value()), describe(before));
        EXPECT_EQ(after.value().numa_distances, before.numa_distances);
        EXPECT_EQ(after.value().npu_sites.size(), before.npu_sites.size());
    }
}

TEST_F(EditedFile, ThisMachineCanBeSavedAndLoaded) {
    ASSERT_TRUE(save_machine("", path_).ok());
    auto before = discover();
    auto after = discover_from_xml(path_);
    ASSERT_TRUE(before.ok() && after.ok()) << after.status().message();
    before.value().notes.clear();
    after.value().source = before.value().source;
    EXPECT_EQ(describe(after.value()), describe(before.value()));
}

TEST(SaveMachine, NamesAFileThatCannotBeWritten) {
    const auto saved = save_machine("", "/nonexistent/machine.xml");
    EXPECT_EQ(saved.code(), Code::config);
    EXPECT_THAT(saved.message(), HasSubstr("cannot write the topology to \"/nonexistent/machine.xml\""));
}

TEST(Discover, ReadsThisMachine) {
    const auto machine = discover();
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_THAT(machine.value().numa_nodes, Not(IsEmpty()));
    EXPECT_GE(cpu_count(machine.value()), 1u);
    EXPECT_EQ(machine.value().source, "this machine");
    for (const auto& nic : machine.value().nics) EXPECT_THAT(nic.ports, Not(IsEmpty())) << nic.name;
}

TEST(Discover, LeavesDevicesOutWhenAsked) {
    const auto machine = discover(Detail::cpus);
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_FALSE(machine.value().devices_known);
    EXPECT_THAT(machine.value().pci, IsEmpty());
    EXPECT_GE(cpu_count(machine.value()), 1u);
}

// hwloc reports each plugin that it finds.
class HwlocPlugins : public testing::Test {
protected:
    void SetUp() override {
        for (auto& [name, value] : saved_) {
            if (const char* const given = std::getenv(name); given != nullptr) value = given;
            ::unsetenv(name);
        }
        ::setenv("HWLOC_PLUGINS_VERBOSE", "1", 1);
        if (report_of(Detail::devices).find(found) == std::string::npos)
            GTEST_SKIP() << "hwloc has no plugins here (package libhwloc-plugins)";
    }
    void TearDown() override {
        for (const auto& [name, value] : saved_) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
    }

    static std::string report_of(Detail detail) {
        testing::internal::CaptureStderr();
        const auto machine = discover(detail);
        std::string report = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(machine.ok()) << machine.status().message();
        return report;
    }

    static constexpr const char* path = "HWLOC_PLUGINS_PATH";
    static constexpr const char* found = "dlforeach found";

private:
    std::map<const char*, std::optional<std::string>> saved_{
        {path, {}}, {"HWLOC_XMLFILE", {}}, {"HWLOC_PLUGINS_VERBOSE", {}}};
};

TEST_F(HwlocPlugins, AreNotLoadedForProcessors) {
    EXPECT_THAT(report_of(Detail::cpus), Not(HasSubstr(found)));
    EXPECT_EQ(std::getenv(path), nullptr);
}

TEST_F(HwlocPlugins, AreThoseThatTheUserChose) {
    ::setenv(path, "/nonexistent/plugins", 1);
    EXPECT_THAT(report_of(Detail::cpus), HasSubstr("/nonexistent/plugins"));
    EXPECT_STREQ(std::getenv(path), "/nonexistent/plugins");
}

// libxml2 reads files that hwloc's own reader does not.
TEST_F(HwlocPlugins, AreLoadedForAFileThatTheUserChose) {
    ::setenv("HWLOC_XMLFILE", topology_path("flat-vm.xml").c_str(), 1);
    EXPECT_THAT(report_of(Detail::cpus), HasSubstr(found));
}

TEST(MachineOf, ReadsThisMachineWithoutAFile) {
    const auto machine = machine_of("", Detail::cpus);
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_EQ(machine.value().source, "this machine");
    EXPECT_FALSE(machine.value().devices_known);
}

TEST(MachineOf, NamesTheVariableInFailures) {
    const auto machine = machine_of("/nonexistent/machine.xml");
    ASSERT_FALSE(machine.ok());
    EXPECT_THAT(machine.status().message(), HasSubstr("NPUSHMEM_TOPO_FILE"));
}

TEST(TopologyFile, MustBeAReadableFile) {
    EXPECT_TRUE(check_topology_file(topology_path("flat-vm.xml")).ok());
    EXPECT_THAT(check_topology_file(topology_path("none.xml")).message(), HasSubstr("No such file"));
    EXPECT_THAT(check_topology_file(NPUSHMEM_TEST_DATA_DIR).message(), HasSubstr("is a directory"));
}

TEST(TopologyFile, HashDistinguishesContents) {
    const auto hash = hash_of_topology_file(topology_path("flat-vm.xml"));
    EXPECT_EQ(hash, hash_of_topology_file(topology_path("../topologies/flat-vm.xml")));
    EXPECT_NE(hash, hash_of_topology_file(topology_path("no-nic.xml")));
}

}  // namespace
}  // namespace npushmem::topology
