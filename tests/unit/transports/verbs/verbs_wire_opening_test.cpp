// SPDX-License-Identifier: BSD-3-Clause
// Errors and clean-up when a wire cannot be opened.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/unit/transports/verbs/verbs_world.hpp"

namespace npushmem::verbs {
namespace {

using test::World;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Status failure_of_opening(World& world) {
    auto wire = world.open(0);
    return wire.ok() ? wire.value()->address().status() : wire.status();
}

TEST(VerbsWireOpening, ReportsAMachineWithoutADevice) {
    World world;
    const Status refused = failure_of_opening(world);
    EXPECT_EQ(refused.code(), Code::unreachable);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("no RDMA device"), HasSubstr("rdma_rxe")));
}

TEST(VerbsWireOpening, ReportsAMissingKernelModule) {
    World world;
    world.verbs->fail("get_device_list", ENOSYS);
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("ib_uverbs"));
}

TEST(VerbsWireOpening, PortsThatAreDownAreNamed) {
    World world;
    world.verbs->add_device("fake0", IBV_PORT_DOWN);
    world.verbs->add_device("fake1", IBV_PORT_INIT);
    const Status refused = failure_of_opening(world);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("no RDMA port is active"), HasSubstr("fake0:1, fake1:1 are down")));
}

TEST(VerbsWireOpening, ADeviceThatCannotBeOpenedIsNamed) {
    World world;
    world.add_devices(1);
    world.verbs->fail("open_device", EACCES);
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("cannot open fake0: Permission denied"));
}

TEST(VerbsWireOpening, PesOfAHostTakeActivePortsInTurnUnlessTheyAreAssignedOthers) {
    World world;
    world.verbs->add_device("fake0");
    world.verbs->add_device("fake1", IBV_PORT_DOWN);
    world.verbs->add_device("fake2");
    world.devices = 3;
    auto second = world.open(1);
    ASSERT_TRUE(second.ok());
    ASSERT_THAT(second.value()->ports(), SizeIs(3));
    EXPECT_EQ(second.value()->ports()[0].bits_per_second, 100'000'000'000U);
    ASSERT_TRUE(second.value()->address().ok());
    EXPECT_THAT(second.value()->traits().name, HasSubstr("fake2:1"));
    EXPECT_EQ(second.value()->use_port(0).code(), Code::state) << "it is open";
    auto first = world.open(0);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first.value()->use_port(3).code(), Code::argument);
    ASSERT_TRUE(first.value()->use_port(1).ok());
    EXPECT_THAT(first.value()->address().status().message(),
                AllOf(HasSubstr("cannot use RDMA port fake1:1"), HasSubstr("the port is down")));
}

TEST(VerbsWireOpening, ValuesMissingInThePortsTablesAreNamed) {
    World world;
    world.add_devices(1);
    world.settings.gid_index = 7;
    EXPECT_THAT(failure_of_opening(world).message(),
                AllOf(HasSubstr("NPUSHMEM_IB_GID_INDEX=7"), HasSubstr("1: RoCE v2 ::ffff:10.0.0.1")));
    world.settings.gid_index = -1;
    world.settings.pkey = 0x8002;
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("NPUSHMEM_IB_PKEY=0x8002"));
    world.settings.pkey = 0x8001;
    EXPECT_TRUE(failure_of_opening(world).ok());
    world.settings.mtu = 4096;
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("NPUSHMEM_IB_MTU=4096: the port supports at most 1024"));
}

TEST(VerbsWireOpening, CheckUsableLeavesNothingOpen) {
    World world;
    world.add_devices(2);
    auto wire = world.open(0);
    ASSERT_TRUE(wire.ok());
    world.verbs->fail("create_cq", ENOMEM, 1);
    EXPECT_TRUE(wire.value()->check_usable().ok());
    EXPECT_EQ(world.verbs->objects(), 0U);
    EXPECT_THAT(wire.value()->check_usable().message(), AllOf(HasSubstr("fake0:1"), HasSubstr("ibv_create_cq")));
    EXPECT_EQ(world.verbs->objects(), 0U);
    world.verbs->clear_fault("create_cq");
    ASSERT_TRUE(wire.value()->use_port(1).ok());
    EXPECT_TRUE(wire.value()->address().ok());
}

TEST(VerbsWireOpening, EveryFailureIsNamedAndLeavesNothingOpen) {
    for (const char* call : {"alloc_pd", "create_comp_channel", "create_cq", "create_srq", "create_qp", "modify_qp",
                             "reg_mr", "post_recv", "post_srq_recv", "query_gid_table"}) {
        for (const int after : {0, 1, 2, 3, 5}) {
            World world;
            world.add_devices(1);
            world.verbs->fail(call, EPERM, after);
            const Status refused = failure_of_opening(world);
            if (after == 0) {
                EXPECT_FALSE(refused.ok()) << call;
                EXPECT_THAT(refused.message(), HasSubstr(call));
            }
            EXPECT_EQ(world.verbs->objects(), 0U) << call << " failed after " << after;
        }
    }
}

TEST(VerbsWireOpening, ADeviceThatDoesNotAnswerIsNamed) {
    for (const auto& [call, object] : {std::pair{"query_device", "fake0"}, std::pair{"query_port", "fake0:1"}}) {
        World world;
        world.add_devices(1);
        world.verbs->fail(call, EIO);
        EXPECT_THAT(failure_of_opening(world).message(),
                    HasSubstr(std::string("can be used; cannot query ") + object + ": Input/output error"));
        EXPECT_EQ(world.verbs->objects(), 0U);
    }
}

TEST(VerbsWireOpening, AUsedWireLeaksNothing) {
    World world;
    world.start();
    world.connect();
    for (auto& wire : world.wires) wire.reset();
    EXPECT_EQ(world.verbs->objects(), 0U);
}

// Limits locked memory to 64 KiB during its lifetime.
class LockedMemoryLimit {
public:
    LockedMemoryLimit() {
        if (::getrlimit(RLIMIT_MEMLOCK, &before_) != 0 || before_.rlim_max < bytes) return;
        rlimit low = before_;
        low.rlim_cur = bytes;
        set_ = ::setrlimit(RLIMIT_MEMLOCK, &low) == 0;
    }
    ~LockedMemoryLimit() {
        if (set_) ::setrlimit(RLIMIT_MEMLOCK, &before_);
    }
    LockedMemoryLimit(const LockedMemoryLimit&) = delete;
    LockedMemoryLimit& operator=(const LockedMemoryLimit&) = delete;
    [[nodiscard]] bool set() const { return set_; }

private:
    static constexpr rlim_t bytes = 65536;
    rlimit before_{};
    bool set_ = false;
};

TEST(VerbsWireOpening, ALimitOfLockedMemoryIsNamedWithItsRemedy) {
    EXPECT_THAT(registration_hint(EPERM, 0), IsEmpty());
    const LockedMemoryLimit low;
    if (!low.set()) GTEST_SKIP() << "less than that may be locked here";
    EXPECT_THAT(registration_hint(ENOMEM, 4096),
                AllOf(HasSubstr("4 KiB are registered already"), HasSubstr("RLIMIT_MEMLOCK"), HasSubstr("is 64 KiB"),
                      HasSubstr("limits.d")));
}

TEST(VerbsWireOpening, AQueuePairWithoutMemoryIsReportedWithTheRegisteredAmount) {
    const LockedMemoryLimit low;
    if (!low.set()) GTEST_SKIP() << "less than that may be locked here";
    World world;
    world.start();
    world.verbs->fail("create_qp", ENOMEM);
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::system);
    EXPECT_THAT(world.at(0).last_error(),
                AllOf(HasSubstr("are registered already"), HasSubstr("RLIMIT_MEMLOCK"), Not(HasSubstr("; 0 B are"))));
}

TEST(VerbsWireOpening, TheUsersChoicesReachTheQueuePair) {
    World world;
    world.settings.retry_count = 3;
    world.settings.timeout = 18;
    world.settings.service_level = 2;
    world.settings.traffic_class = 106;
    world.settings.mtu = 512;
    world.start();
    world.connect();
    const auto& changes = world.verbs->changes;
    const auto has = [&](auto&& holds) { return std::any_of(changes.begin(), changes.end(), holds); };
    EXPECT_TRUE(has([](const ibv_qp_attr& to) {
        return to.qp_state == IBV_QPS_RTR && to.path_mtu == IBV_MTU_512 && to.ah_attr.sl == 2 &&
               to.ah_attr.is_global == 1 && to.ah_attr.grh.traffic_class == 106 && to.ah_attr.grh.sgid_index == 1;
    }));
    EXPECT_TRUE(has([](const ibv_qp_attr& to) {
        return to.qp_state == IBV_QPS_RTS && to.retry_cnt == 3 && to.timeout == 18 && to.rnr_retry == 7;
    }));
}

TEST(VerbsWireOpening, WithinAnInfinibandSubnetPeersAreNamedByTheirLocalIdentifiers) {
    for (const bool same_subnet : {true, false}) {
        World world;
        for (unsigned i = 0; i < 2; ++i) {
            auto& device =
                world.verbs->add_device("ib" + std::to_string(i), IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND);
            device.ports[0].lid = static_cast<std::uint16_t>(7 + i);
            device.gids[0].gid.raw[7] = same_subnet ? 0 : static_cast<std::uint8_t>(i);
        }
        world.devices = 2;
        world.settings.pkey = 0x8001;
        world.settings.service_level = 3;
        world.settings.traffic_class = 9;
        world.start();
        world.connect();
        EXPECT_EQ(world.at(0).traits().protocol, "verbs RC, InfiniBand");
        const auto& changes = world.verbs->changes;
        const auto has = [&](auto&& holds) { return std::any_of(changes.begin(), changes.end(), holds); };
        EXPECT_TRUE(has([&](const ibv_qp_attr& to) {
            return to.qp_state == IBV_QPS_RTR && to.ah_attr.dlid == 8 && to.ah_attr.sl == 3 &&
                   to.ah_attr.is_global == (same_subnet ? 0 : 1) &&
                   (same_subnet || (to.ah_attr.grh.dgid.raw[7] == 1 && to.ah_attr.grh.traffic_class == 9));
        })) << same_subnet;
        EXPECT_FALSE(has([](const ibv_qp_attr& to) { return to.qp_state == IBV_QPS_INIT && to.pkey_index != 1; }))
            << "0x8001 is the second key of the port";
    }
}

TEST(VerbsWireOpening, TheChosenAddressReachesTheQueuePairAndThePeer) {
    World world;
    auto& device = world.verbs->add_device("fake0");
    world.devices = 1;
    ibv_gid_entry other = device.gids[0];
    other.gid_index = 6;
    other.gid_type = IBV_GID_TYPE_ROCE_V1;
    other.gid.raw[0] = 0x20;
    device.gids.push_back(other);
    device.ports[0].gid_tbl_len = 8;
    world.settings.roce_version = 1;
    world.settings.family = AddressFamily::ipv6;
    world.start();
    world.connect();
    EXPECT_EQ(world.at(0).traits().protocol, "verbs RC, RoCE v1");
    EXPECT_THAT(world.at(0).traits().name, HasSubstr("6: RoCE v1 2000::"));
    const auto& changes = world.verbs->changes;
    EXPECT_TRUE(std::any_of(changes.begin(), changes.end(), [](const ibv_qp_attr& to) {
        return to.qp_state == IBV_QPS_RTR && to.ah_attr.is_global == 1 && to.ah_attr.grh.sgid_index == 6 &&
               to.ah_attr.grh.dgid.raw[0] == 0x20;
    }));
}

}  // namespace
}  // namespace npushmem::verbs
