// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/start_cost.hpp"

#include <gmock/gmock.h>

#include "bench/simulate/start_exchanges.hpp"
#include "bootstrap/rendezvous/settings.hpp"

namespace npushmem::simulate {
namespace {

// o <= g, and bytes of TCP are free: a frame occupies its sender and its receiver for 20.
constexpr Model start_model{.node = {.latency = 50, .overhead = 1, .gap = 2, .per_byte = 0.25},
                            .tcp = {.latency = 1000, .overhead = 10, .gap = 20}};
constexpr double frame = 20;
constexpr double latency = 1000;

StartCost cost_of_start(int members, int per_node, const Model& model = start_model) {
    const auto made = start_cost({members, per_node}, model);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value() : StartCost{};
}

// The opening barrier, and those of start_exchanges.
double exchanges() { return 1 + static_cast<double>(start_exchanges(StartTraits::typical(true)).size()); }

TEST(StartCosts, OfTwoPesOnTwoHosts) {
    const StartCost made = cost_of_start(2, 1);
    // SYN and its answer, hello; both PEs are accepted, heard and challenged; the last challenge travels, and the
    // answer; both have an assignment, the last of which travels.
    const double handshake = frame + 2 * latency + frame + latency;
    EXPECT_DOUBLE_EQ(made.join,
                     handshake + 2 * 3 * frame + (2 * frame + 2 * latency) + frame + 2 * frame + latency + frame);
    EXPECT_DOUBLE_EQ(made.connect, handshake + 3 * frame + (2 * frame + 2 * latency) + frame);
    EXPECT_DOUBLE_EQ(made.exchange, exchanges() * 2 * (2 * frame + latency)) << "one frame up, one down";
    EXPECT_DOUBLE_EQ(made.messages, 2 * 5 + 3 + exchanges() * 2);
    EXPECT_DOUBLE_EQ(made.nanoseconds, made.join + made.connect + made.exchange);
}

// The root reads its four children one after another, and sends to them one after another.
TEST(StartCosts, OfATreeOfOneLevel) {
    const double up = frame + latency + 4 * frame;
    const double down = 4 * frame + latency + frame;
    EXPECT_DOUBLE_EQ(cost_of_start(5, 1).exchange, exchanges() * (up + down));
}

// Rank 1 has ranks 1 and 2: one more hop. The root reads rank 1 last, as the order is that of the ranks.
TEST(StartCosts, OfATreeOfTwoLevels) {
    const double hop = 2 * frame + latency;
    const double up = 2 * hop + 3 * frame;  // the frames of the other children have arrived meanwhile
    const double down = 4 * frame + latency + frame + frame + latency + frame;
    EXPECT_DOUBLE_EQ(cost_of_start(6, 1).exchange, exchanges() * (up + down));
}

TEST(StartCosts, BytesTakeTheirTimeAtBothEndsAndTravelInPieces) {
    Model slow = start_model;
    slow.tcp.per_byte = 1;
    constexpr double header = 40 + 24;                       // of a frame, of a collective
    double expected = 2 * (2 * (frame + header) + latency);  // the opening barrier
    double received = 0;
    for (const StartExchange& each : start_exchanges(StartTraits::typical(true))) {
        const auto bytes = static_cast<double>(each.bytes);
        expected += 2 * (frame + header + bytes) + latency;      // up
        expected += 2 * (frame + header + 2 * bytes) + latency;  // down
        received += 2 * bytes;
    }
    EXPECT_DOUBLE_EQ(cost_of_start(2, 1, slow).exchange, expected);
    EXPECT_DOUBLE_EQ(cost_of_start(2, 1, slow).received_bytes, received);
}

// Rank 0 and four subtrees of 85 ranks, whose data fits into one piece each. The endpoints of all need two pieces.
TEST(StartCosts, OfLargeExchangesCountThePieces) {
    constexpr int members = 341;
    double frames = members * 5 + (members - 1) * (3 + 2);  // join, connections, the opening barrier
    for (const StartExchange& each : start_exchanges(StartTraits::typical(true))) {
        ASSERT_LE(85 * each.bytes, rendezvous::limits::chunk_bytes);
        frames += (members - 1) * (members * each.bytes > rendezvous::limits::chunk_bytes ? 3 : 2);
    }
    EXPECT_DOUBLE_EQ(cost_of_start(members, 1).messages, frames);
}

TEST(StartCosts, OfOneHostAreOfItsMemory) {
    const StartCost made = cost_of_start(4, 4);
    EXPECT_DOUBLE_EQ(made.connect, 0);
    EXPECT_DOUBLE_EQ(made.join, 0) << "in the launcher's memory";
    EXPECT_DOUBLE_EQ(made.messages, 0);
    constexpr double round = 4 * 2 + 4 * 64 * 0.25 + 50 + 1;  // counter, calls, notice
    double expected = round;
    double kept = 0;
    for (const StartExchange& each : start_exchanges(StartTraits::typical(false))) {
        EXPECT_LE(each.bytes, 1024U) << "one round";
        expected += round + 4 * static_cast<double>(each.bytes) * 0.25;
        if (each.is_kept) kept += 4 * static_cast<double>(each.bytes);
    }
    EXPECT_DOUBLE_EQ(made.exchange, expected);
    EXPECT_DOUBLE_EQ(made.memory_bytes, kept);
}

TEST(StartCosts, GrowWithTheJob) {
    const Model usual = default_model();
    StartCost before;
    for (const int members : {16, 100, 1000, 10'000, 100'000, 1'000'000}) {
        const StartCost made = cost_of_start(members, 8, usual);
        EXPECT_GT(made.join, before.join);
        EXPECT_GE(made.connect, before.connect);
        EXPECT_GT(made.exchange, before.exchange);
        EXPECT_GT(made.messages, before.messages);
        EXPECT_GT(made.received_bytes, before.received_bytes);
        EXPECT_GT(made.memory_bytes, before.memory_bytes);
        before = made;
    }
}

TEST(StartCosts, RejectJobsThatTheBootstrapDoesNotStart) {
    for (const Team& team : {Team{1, 1}, Team{0, 1}, Team{2, 0}, Team{rendezvous::limits::ranks + 1, 8}})
        EXPECT_EQ(start_cost(team, start_model).status().code(), Code::argument)
            << team.members << ' ' << team.per_node;
    EXPECT_TRUE(start_cost({rendezvous::limits::ranks, 8}, start_model).ok());
}

}  // namespace
}  // namespace npushmem::simulate
