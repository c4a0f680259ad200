#include "transports/trace/call_stats.hpp"

#include <gtest/gtest.h>

namespace npushmem::trace {
namespace {

using namespace std::chrono_literals;

TEST(CallStats, CountsWhatMovedOnly) {
    CallStats stats;
    stats.add(Code::ok, 1024, 2us);
    stats.add(Code::again, 1024, 0us);
    stats.add(Code::peer_dead, 1024, 1us);
    EXPECT_EQ(stats.calls(), 3U);
    EXPECT_EQ(stats.bytes(), 1024U);
    EXPECT_EQ(stats.summary("put"), "put: 3 calls, 1 KiB, 3 us, 1 us each, 1 times 'again', 1 failed");
}

TEST(CallStats, LeavesOutWhatDidNotHappen) {
    CallStats stats;
    stats.add(Code::ok, 0, 500ns);
    EXPECT_EQ(stats.summary("fence"), "fence: 1 call, 500 ns, 500 ns each");
}

}  // namespace
}  // namespace npushmem::trace
