// SPDX-License-Identifier: BSD-3-Clause
#include "transports/nomap/nomap_transport.hpp"

#include <gmock/gmock.h>

#include "npushmem/testing/mocks.hpp"

namespace npushmem {
namespace {

TEST(Nomap, HidesTheMappingAndPassesTheRestOn) {
    ::testing::NiceMock<MockTransport> inner;
    ON_CALL(inner, reach(::testing::_)).WillByDefault([](const npushmem_peer&) {
        return Reach{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, 0, 0, "near", 300, 7};
    });
    const fakes::InnerTable table(inner);
    NomapTransport nomap(table.params());
    const Reach reach = nomap.reach(npushmem_peer{});
    EXPECT_EQ(reach.capabilities, NPUSHMEM_CAP_PUT);
    EXPECT_EQ(reach.why, "near, mapping hidden");
    EXPECT_EQ(reach.latency_ns, 300U);
    EXPECT_EQ(reach.bytes_per_second, 7U);
    EXPECT_CALL(inner, forget(4)).WillOnce(::testing::Return(Code::ok));
    EXPECT_EQ(nomap.forget(4), Code::ok);
    EXPECT_CALL(inner, map(::testing::_)).Times(0);
    EXPECT_EQ(nomap.map(1).status().code(), Code::unsupported);
    EXPECT_CALL(inner, put(7, ::testing::_, ::testing::_)).WillOnce(::testing::Return(Code::again));
    EXPECT_EQ(nomap.put(7, npushmem_rma{}, nullptr), Code::again);
}

TEST(Nomap, RejectsAMissingInnerTransport) {
    EXPECT_EQ(NomapTransport::open(Host(nullptr, "nomap"), npushmem_transport_params{}).status().code(),
              Code::argument);
}

}  // namespace
}  // namespace npushmem
