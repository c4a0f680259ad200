// SPDX-License-Identifier: BSD-3-Clause
// The use of assigned ports.
#include "transports/verbs/verbs_transport.hpp"

#include <gmock/gmock.h>

#include <array>
#include <numeric>

#include "npushmem/testing/fake_host.hpp"
#include "tests/unit/transports/verbs/fake_verbs.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class VerbsTransportTest : public ::testing::Test {
protected:
    std::unique_ptr<VerbsTransport> make(std::string note = "") {
        VerbsTransport::WireParameters ground{
            Host(&host_.table(), "verbs"), verbs_, settings_, {0, 2, 0}, nullptr, std::move(note)};
        auto wire = verbs::VerbsWire::open(ground.library, ground.settings, ground.local_pe);
        verbs::VerbsWire& opened = *wire.value();
        npushmem_transport_params params{};
        params.npes = 2;
        network::NetworkSettings quiet;
        quiet.thread = false;
        return std::make_unique<VerbsTransport>(params, std::move(ground), opened, std::move(wire).value(), quiet);
    }
    static Status use(VerbsTransport& transport, std::uint32_t count, std::uint32_t first = 0) {
        std::vector<std::uint32_t> index(count);
        std::iota(index.begin(), index.end(), first);
        return transport.use_devices(index);
    }
    // The text of the transport map.
    static Reach way_to_itself(VerbsTransport& transport) { return way_to(transport, transport); }
    static Reach way_to(VerbsTransport& transport, VerbsTransport& other) {
        EXPECT_TRUE(transport.address().ok());  // says what it speaks
        const Bytes address = other.address().value();
        npushmem_peer peer{};
        peer.pe = 1;
        peer.address = address.data();
        peer.address_bytes = static_cast<std::uint32_t>(address.size());
        return transport.reach(peer);
    }
    std::string logged() const {
        std::string out;
        for (const auto& line : host_.lines()) out += line.text + "\n";
        return out;
    }

    fakes::FakeHost host_;
    std::shared_ptr<fakes::FakeVerbs> verbs_ = std::make_shared<fakes::FakeVerbs>();
    verbs::VerbsSettings settings_;
};

TEST_F(VerbsTransportTest, UsesAndNamesAllAssignedPorts) {
    for (const char* name : {"fake0", "fake1", "fake2"}) verbs_->add_device(name);
    const auto transport = make();
    ASSERT_TRUE(use(*transport, 2, 1).ok());
    EXPECT_THAT(way_to_itself(*transport).why,
                AllOf(HasSubstr("fake1:1"), HasSubstr("fake2:1"), Not(HasSubstr("fake0"))));
    EXPECT_EQ(logged(), "");
}

TEST_F(VerbsTransportTest, OmitsFurtherUnusablePortsAndReportsTheReason) {
    verbs_->add_device("fake0");
    verbs_->add_device("down1", IBV_PORT_DOWN);
    verbs_->add_device("other2", IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND);
    const auto transport = make();
    ASSERT_TRUE(use(*transport, 3).ok());
    EXPECT_THAT(way_to_itself(*transport).why, AllOf(HasSubstr("fake0:1"), Not(HasSubstr(" and "))));
    EXPECT_THAT(logged(),
                AllOf(HasSubstr("RDMA port down1:1 is left out: cannot use RDMA port down1:1: the port is down"),
                      HasSubstr("RDMA port other2:1 is left out: it is verbs RC, InfiniBand")));
}

TEST_F(VerbsTransportTest, FailsIfTheFirstPortIsUnusable) {
    verbs_->add_device("down0", IBV_PORT_DOWN);
    verbs_->add_device("fake1");
    const auto transport = make();
    const Status refused = use(*transport, 2);
    EXPECT_EQ(refused.code(), Code::unreachable);
    EXPECT_THAT(refused.message(), HasSubstr("cannot use RDMA port down0:1: the port is down"));
    EXPECT_EQ(use(*transport, 2, 1).code(), Code::argument) << "there are two";
    EXPECT_EQ(verbs_->objects(), 0U) << "what was made is unmade";
}

TEST_F(VerbsTransportTest, HasRoomForFivePortsInItsAddress) {
    for (int i = 0; i < 6; ++i) verbs_->add_device("fake" + std::to_string(i));
    const auto transport = make();
    ASSERT_TRUE(use(*transport, 6).ok());
    EXPECT_THAT(way_to_itself(*transport).why, AllOf(HasSubstr("fake4:1"), Not(HasSubstr("fake5"))));
    EXPECT_THAT(logged(), HasSubstr("RDMA port fake5:1 is left out: a PE uses at most 5 ports"));
    std::uint64_t word = 0;
    npushmem_memory memory{};
    memory.base = &word;
    memory.bytes = sizeof word;
    EXPECT_TRUE(transport->register_memory(memory).ok());
}

TEST_F(VerbsTransportTest, TwoDevicesAreNotAtomicWithEachOther) {
    settings_.atomics = verbs::NativeAtomics::always;
    for (const char* name : {"fake0", "fake1"}) verbs_->add_device(name);
    const auto transport = make();
    EXPECT_EQ(transport->settings_for(std::array{1U}).atomics, verbs::NativeAtomics::always);
    EXPECT_EQ(transport->settings_for(std::array{0U, 1U}).atomics, verbs::NativeAtomics::if_coherent);
}

TEST_F(VerbsTransportTest, RefusesAPeerWhoseAtomicsAreCarriedOutElsewhere) {
    settings_.atomics = verbs::NativeAtomics::always;
    for (const char* name : {"fake0", "fake1"}) verbs_->add_device(name);
    const auto with_one = make();
    const auto with_two = make();
    ASSERT_TRUE(use(*with_one, 1).ok());
    ASSERT_TRUE(use(*with_two, 2).ok());
    const Reach refused = way_to(*with_one, *with_two);
    EXPECT_FALSE(refused.reachable());
    EXPECT_THAT(refused.why, AllOf(HasSubstr("'verbs RC, RoCE v2'"), HasSubstr("'verbs RC, RoCE v2, native atomics'")));
    EXPECT_FALSE(way_to(*with_two, *with_one).reachable());
    EXPECT_TRUE(way_to(*with_two, *with_two).reachable());
}

TEST_F(VerbsTransportTest, ReportsThatBuffersAreRegisteredForEachTransfer) {
    verbs_->add_device("fake0");
    const auto transport = make("buffers are registered for each transfer");
    EXPECT_THAT(way_to_itself(*transport).why,
                HasSubstr("fake0:1 -> 10.0.0.1, rail 0 on both ends; buffers are registered"));
}

}  // namespace
}  // namespace npushmem
