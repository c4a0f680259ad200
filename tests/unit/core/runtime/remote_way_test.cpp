#include "core/runtime/remote_way.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

TEST(RemoteWayChoice, GoesByTheVariableBetweenHosts) {
    const RemoteWayChoice proxied = choose_remote_way("0", true, {8, 8});
    EXPECT_EQ(proxied.way, npu::RemoteWay::proxy);
    EXPECT_THAT(proxied.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=0"));
    const RemoteWayChoice direct = choose_remote_way("1", true, {8, 1});
    EXPECT_EQ(direct.way, npu::RemoteWay::direct);
    EXPECT_THAT(direct.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=1"));
}

TEST(RemoteWayChoice, LooksForACpuForTheProxyUnlessTold) {
    const RemoteWayChoice roomy = choose_remote_way("auto", true, {8, 4});
    EXPECT_EQ(roomy.way, npu::RemoteWay::proxy);
    EXPECT_THAT(roomy.text, HasSubstr("4 PEs with a proxy each have room on 8 CPUs"));
    const RemoteWayChoice crowded = choose_remote_way("auto", true, {7.5, 4});
    EXPECT_EQ(crowded.way, npu::RemoteWay::direct);
    EXPECT_THAT(crowded.text, HasSubstr("auto: 4 PEs with a proxy each would share 7.5 CPUs"));
}

TEST(RemoteWayChoice, IsDirectWithinAHost) {
    for (const char* ibgda : {"auto", "0", "1"}) {
        const RemoteWayChoice choice = choose_remote_way(ibgda, false, {8, 1});
        EXPECT_EQ(choice.way, npu::RemoteWay::direct);
        EXPECT_THAT(choice.text, HasSubstr("within a host"));
    }
}

}  // namespace
}  // namespace npushmem
