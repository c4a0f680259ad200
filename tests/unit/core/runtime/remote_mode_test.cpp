#include "core/runtime/remote_mode.hpp"

#include <gmock/gmock.h>

namespace npushmem {
namespace {

using ::testing::HasSubstr;

TEST(RemoteModeChoice, FollowsTheVariableBetweenHosts) {
    const RemoteModeChoice proxied = choose_remote_mode("0", true, {8, 8});
    EXPECT_EQ(proxied.mode, npu::RemoteMode::proxy);
    EXPECT_THAT(proxied.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=0"));
    const RemoteModeChoice direct = choose_remote_mode("1", true, {8, 1});
    EXPECT_EQ(direct.mode, npu::RemoteMode::direct);
    EXPECT_THAT(direct.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=1"));
}

TEST(RemoteModeChoice, NeedsAFreeCpuForTheProxyUnlessConfigured) {
    const RemoteModeChoice roomy = choose_remote_mode("auto", true, {8, 4});
    EXPECT_EQ(roomy.mode, npu::RemoteMode::proxy);
    EXPECT_THAT(roomy.text, HasSubstr("4 PEs with a proxy each have room on 8 CPUs"));
    const RemoteModeChoice crowded = choose_remote_mode("auto", true, {7.5, 4});
    EXPECT_EQ(crowded.mode, npu::RemoteMode::direct);
    EXPECT_THAT(crowded.text, HasSubstr("auto: 4 PEs with a proxy each would share 7.5 CPUs"));
}

TEST(RemoteModeChoice, IsDirectWithinAHost) {
    for (const char* ibgda : {"auto", "0", "1"}) {
        const RemoteModeChoice choice = choose_remote_mode(ibgda, false, {8, 1});
        EXPECT_EQ(choice.mode, npu::RemoteMode::direct);
        EXPECT_THAT(choice.text, HasSubstr("within a host"));
    }
}

}  // namespace
}  // namespace npushmem
