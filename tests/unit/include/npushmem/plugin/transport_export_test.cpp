// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/plugin/transport_export.hpp"

#include <gmock/gmock.h>

#include "npushmem/plugin/table_transport.hpp"
#include "npushmem/testing/mocks.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::NiceMock;

// A class on both sides of the boundary: each side receives the values that the other gives.
class RoundTrip : public ::testing::Test {
protected:
    NiceMock<MockTransport> author_;
    fakes::InnerTable table_{author_};
    TableTransport host_{*table_.params().inner, table_.params().inner_self, TableTransport::Owning::no};
};

TEST_F(RoundTrip, DevicesFitAHostWithSmallerStructures) {
    npushmem_device one{};
    std::snprintf(one.name, sizeof one.name, "nic0");
    npushmem_device two = one;
    std::snprintf(two.name, sizeof two.name, "nic1");
    ON_CALL(author_, devices).WillByDefault([=] { return std::vector{one, two}; });
    ASSERT_EQ(host_.devices().value().size(), 2U);
    EXPECT_STREQ(host_.devices().value()[1].name, "nic1");
    // An older host knows the structure only up to the name's begin.
    constexpr std::uint32_t older = offsetof(npushmem_device, name);
    std::array<std::byte, 2 * older + 8> out{};
    out.back() = std::byte{0x11};
    std::uint32_t count = 2;
    const auto& t = *table_.params().inner;
    ASSERT_EQ(t.devices(&author_, out.data(), older, &count, nullptr), NPUSHMEM_OK);
    std::uint32_t size = 0;
    std::memcpy(&size, out.data() + older, sizeof size);
    EXPECT_EQ(size, older) << "the second device is not where the older host looks for it";
    EXPECT_EQ(out.back(), std::byte{0x11});
}

TEST_F(RoundTrip, PeersOfAHostWithSmallerStructuresAreFilledUpWithZeros) {
    npushmem_peer peer{};
    peer.struct_size = offsetof(npushmem_peer, address);
    peer.pe = 5;
    peer.address = &peer;  // beyond the size: must not be read
    EXPECT_CALL(author_, connect(_)).WillOnce([](const npushmem_peer& seen) {
        EXPECT_EQ(seen.pe, 5);
        EXPECT_EQ(seen.address, nullptr);
        EXPECT_EQ(seen.struct_size, sizeof(npushmem_peer));
        return Status{};
    });
    EXPECT_TRUE(host_.connect(peer).ok());
}

TEST_F(RoundTrip, DeregistersMemoryWhoseHandleIsTooLong) {
    EXPECT_CALL(author_, register_memory(_)).WillOnce([](const npushmem_memory&) {
        return RegisteredMemory{7, Bytes(NPUSHMEM_HANDLE_MAX + 1)};
    });
    EXPECT_CALL(author_, deregister_memory(7));
    const auto registered = host_.register_memory(npushmem_memory{});
    EXPECT_EQ(registered.status().code(), Code::range);
    EXPECT_THAT(registered.status().message(), ::testing::HasSubstr("257"));
}

TEST_F(RoundTrip, MessagesAndCodesOfFailures) {
    ON_CALL(author_, create_queue).WillByDefault([]() -> Result<std::uint64_t> {
        return Status{Code::memory, "no queue left"};
    });
    EXPECT_EQ(host_.create_queue().status().code(), Code::memory);
    EXPECT_EQ(host_.create_queue().status().message(), "no queue left");
    ON_CALL(author_, quiet(_)).WillByDefault(::testing::Throw(std::runtime_error("boom")));
    EXPECT_EQ(host_.quiet(1), Code::system);
}

// The host reports no failure of these calls, so an event would belong to none of its callers.
TEST_F(RoundTrip, ExceptionsWhileResourcesAreReleasedLeaveNoEvent) {
    const auto thrown = ::testing::Throw(std::runtime_error("boom"));
    ON_CALL(author_, forget(_)).WillByDefault(thrown);
    ON_CALL(author_, release_memory(_)).WillByDefault(thrown);
    ON_CALL(author_, deregister_memory(_)).WillByDefault(thrown);
    ON_CALL(author_, destroy_queue(_)).WillByDefault(thrown);
    ON_CALL(author_, poll_event(_)).WillByDefault(::testing::Return(Code::again));
    EXPECT_EQ(host_.forget(1), Code::system);
    EXPECT_EQ(host_.release_memory(1), Code::system);
    EXPECT_EQ(host_.deregister_memory(1), Code::system);
    EXPECT_EQ(host_.destroy_queue(1), Code::system);
    npushmem_event event{};
    EXPECT_EQ(host_.poll_event(event), Code::again) << event.message;
    ON_CALL(author_, quiet(_)).WillByDefault(thrown);
    EXPECT_EQ(host_.quiet(1), Code::system);
    EXPECT_EQ(host_.poll_event(event), Code::ok) << "a failure that the host reports has its message";
}

TEST_F(RoundTrip, EventsAreDelivered) {
    ON_CALL(author_, poll_event(_)).WillByDefault([](npushmem_event& event) {
        event.code = NPUSHMEM_E_PEER_DEAD;
        event.pe = 3;
        return Code::ok;
    });
    npushmem_event event{};
    EXPECT_EQ(host_.poll_event(event), Code::ok);
    EXPECT_EQ(event.pe, 3);
}

TEST_F(RoundTrip, TruncatesTheReasonOfAReach) {
    ON_CALL(author_, reach(_)).WillByDefault([](const npushmem_peer&) {
        return Reach{1, 0, 0, std::string(999, 'w')};
    });
    EXPECT_EQ(host_.reach(npushmem_peer{}).why.size(), sizeof(npushmem_reach::why) - 1);
}

}  // namespace
}  // namespace npushmem
