// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/sysfs_nic.hpp"

#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace npushmem::topology {
namespace {

using ::testing::SizeIs;

// A folder with sysfs's layout; TearDown removes it.
class SysfsNic : public ::testing::Test {
protected:
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + "/" + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text << '\n';
    }
    static Nic nic(const std::string& name, NicKind kind) {
        Nic out;
        out.name = name;
        out.kind = kind;
        out.ports = {NicPort{}};
        return out;
    }
    const std::string root_ = ::testing::TempDir() + "npushmem_sysfs_" + std::to_string(::getpid());
};

TEST_F(SysfsNic, ReadsAllPortsOfAVerbsDevice) {
    write("class/infiniband/mlx5_0/ports/2/state", "1: DOWN");
    write("class/infiniband/mlx5_0/ports/2/rate", "2.5 Gb/sec (1X SDR)");
    write("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    write("class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
    auto device = nic("mlx5_0", NicKind::rdma);
    read_port_states(device, root_);
    ASSERT_THAT(device.ports, SizeIs(2));
    EXPECT_EQ(device.ports[0].number, 1u);
    EXPECT_EQ(device.ports[0].state, PortState::active);
    EXPECT_EQ(device.ports[0].bits_per_second, 200'000'000'000u);
    EXPECT_EQ(device.ports[1].state, PortState::down);
    EXPECT_EQ(device.ports[1].bits_per_second, 2'500'000'000u);
}

TEST_F(SysfsNic, ReadsANetworkInterface) {
    write("class/net/eth0/operstate", "up");
    write("class/net/eth0/speed", "25000");
    auto interface = nic("eth0", NicKind::network);
    read_port_states(interface, root_);
    EXPECT_EQ(interface.ports[0].state, PortState::active);
    EXPECT_EQ(interface.ports[0].bits_per_second, 25'000'000'000u);
}

TEST_F(SysfsNic, TreatsMalformedValuesAsUnknown) {
    write("class/net/eth0/operstate", "dormant");
    write("class/net/eth0/speed", "-1");
    write("class/infiniband/mlx5_0/ports/1/rate", "fast");
    auto interface = nic("eth0", NicKind::network);
    read_port_states(interface, root_);
    EXPECT_EQ(interface.ports[0].state, PortState::unknown);
    EXPECT_EQ(interface.ports[0].bits_per_second, 0u);
    auto device = nic("mlx5_0", NicKind::rdma);
    read_port_states(device, root_);
    EXPECT_EQ(device.ports[0].bits_per_second, 0u);
}

TEST_F(SysfsNic, KeepsItsPortsWithoutTheFolder) {
    auto device = nic("mlx5_7", NicKind::rdma);
    read_port_states(device, root_);
    EXPECT_THAT(device.ports, SizeIs(1));
}

}  // namespace
}  // namespace npushmem::topology
