// SPDX-License-Identifier: BSD-3-Clause
#include "transports/self/self_transport.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

npushmem_memory memory_of(std::span<std::byte> bytes) {
    npushmem_memory out{};
    out.struct_size = sizeof out;
    out.fd = -1;  // needs no file
    out.base = bytes.data();
    out.bytes = bytes.size();
    return out;
}

TEST(Self, ReachesOnlyItself) {
    SelfTransport self(3);
    npushmem_peer peer{};
    peer.pe = 3;
    EXPECT_TRUE(self.reach(peer).has(NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_TARGET_PROGRESS));
    EXPECT_FALSE(self.reach(peer).has(NPUSHMEM_CAP_REPORTS_DEATH));
    peer.pe = 4;
    EXPECT_FALSE(self.reach(peer).reachable());
    EXPECT_THAT(self.reach(peer).why, HasSubstr("another PE"));
}

TEST(Self, MapsItsOwnMemoryOnly) {
    std::array<std::byte, 64> bytes{};
    SelfTransport self(0);
    const auto handle = self.register_memory(memory_of(bytes)).value().handle;
    EXPECT_EQ(self.map(self.import_memory(0, handle).value()).value(), static_cast<void*>(bytes.data()));
    EXPECT_EQ(self.import_memory(1, handle).status().code(), Code::unreachable);
    SelfTransport other(1);
    EXPECT_EQ(other.import_memory(1, handle).status().code(), Code::unreachable);
}

TEST(Self, RejectsAHandleAfterDeregistration) {
    std::array<std::byte, 64> bytes{};
    SelfTransport self(0);
    const auto registered = self.register_memory(memory_of(bytes)).value();
    EXPECT_EQ(self.deregister_memory(registered.region), Code::ok);
    EXPECT_EQ(self.deregister_memory(registered.region), Code::argument);
    EXPECT_THAT(self.import_memory(0, registered.handle).status().message(), HasSubstr("not registered"));
    EXPECT_FALSE(self.register_memory(npushmem_memory{}).ok());
}

}  // namespace
}  // namespace npushmem
