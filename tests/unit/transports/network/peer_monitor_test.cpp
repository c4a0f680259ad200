// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/peer_monitor.hpp"

#include <gmock/gmock.h>

namespace npushmem::network {
namespace {

using ::testing::HasSubstr;
using Finding = PeerMonitor::Finding;

// A peer is lost after a second of silence. It is checked every 250 ms.
class PeerMonitorTest : public ::testing::Test {
protected:
    PeerMonitorTest() { monitor_.record_added(1); }
    PeerMonitor monitor_{2, std::chrono::seconds(1), std::chrono::milliseconds(250)};
};

TEST_F(PeerMonitorTest, PingsASilentPeerAndReportsItAfterTheTimeout) {
    EXPECT_EQ(monitor_.check(1), Finding::alive);
    EXPECT_EQ(monitor_.check(1), Finding::needs_ping);
    EXPECT_EQ(monitor_.check(1), Finding::alive);
    EXPECT_EQ(monitor_.check(1), Finding::needs_ping);
    EXPECT_EQ(monitor_.check(1), Finding::silent);
    EXPECT_THAT(monitor_.silence_of(1), HasSubstr("silent for 1.2 s and has never sent anything"));
}

TEST_F(PeerMonitorTest, CountsSilenceFromTheLastSignOfLife) {
    for (int i = 0; i < 4; ++i) (void)monitor_.check(1);
    monitor_.record_activity(1);
    for (int i = 0; i < 5; ++i) EXPECT_NE(monitor_.check(1), Finding::silent);
    EXPECT_EQ(monitor_.check(1), Finding::silent);
    EXPECT_THAT(monitor_.silence_of(1), HasSubstr("is the cable in"));
}

TEST_F(PeerMonitorTest, IgnoresPeersThatAreUnknownOrLost) {
    EXPECT_TRUE(monitor_.record_loss(1, Code::unreachable));
    EXPECT_FALSE(monitor_.record_loss(1, Code::timeout));
    EXPECT_EQ(monitor_.failure(1), Code::unreachable);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(monitor_.check(0), Finding::alive);
        EXPECT_EQ(monitor_.check(1), Finding::alive);
    }
}

TEST(PeerMonitor, WithoutATimeoutNeverReportsSilence) {
    PeerMonitor monitor(1, std::chrono::milliseconds(0), std::chrono::milliseconds(250));
    monitor.record_added(0);
    for (int i = 0; i < 100; ++i) EXPECT_NE(monitor.check(0), Finding::silent);
}

TEST(EventQueue, KeepsTheFirstEventsIfTheProgramNeverPolls) {
    std::mutex lock;
    EventQueue events;
    npushmem_event out{};
    EXPECT_EQ(events.poll(lock, out), Code::again);
    for (int pe = 0; pe < 100; ++pe) events.report(Code::unreachable, pe, "it is lost");
    int polled = 0;
    while (events.poll(lock, out) == Code::ok) EXPECT_EQ(out.pe, polled++);
    EXPECT_EQ(polled, 64);
    EXPECT_STREQ(out.message, "it is lost");
}

}  // namespace
}  // namespace npushmem::network
