// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/collective_cost.hpp"

#include <gmock/gmock.h>

#include "core/coll/barrier/tuning.hpp"

namespace npushmem::simulate {
namespace {

using coll::Method;
using ::testing::HasSubstr;

// o <= g, as the formulas assume. All members on nodes of their own.
constexpr Model cluster{.node = {.latency = 100, .overhead = 10, .gap = 20, .per_byte = 0.25},
                        .network = {.latency = 1000, .overhead = 50, .gap = 70, .per_byte = 0.5}};

constexpr double round_trip = 2 * (1000 + 50);  // 2L + 2o

double put_of(double bytes) { return 70 + bytes * 0.5; }
double get_of(double bytes) { return round_trip + bytes * 0.5; }

double barrier_of(int members) {
    const auto choice = barrier::choose("auto", {members, 1, members, false}, {});
    return simulate(choice.value().plan, {members, 1}, cluster).value().nanoseconds;
}

CollectiveCost cost(std::uint32_t collective, std::uint64_t bytes, int members, Method method, int per_node = 1) {
    const auto made = cost_of({collective, bytes, method}, {members, per_node}, cluster);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value() : CollectiveCost{};
}

// The formulas of the cost model, exactly: for teams of which all members are recorded, and for larger ones.
class Formulas : public ::testing::TestWithParam<int> {
protected:
    const int n = GetParam();
    const double others = n - 1;
    const double barrier = barrier_of(n);
};

TEST_P(Formulas, OfABroadcastByPush) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_BROADCAST, 4096, n, Method::push);
    EXPECT_DOUBLE_EQ(made.nanoseconds, others * put_of(4096) + 2000 + barrier);
    EXPECT_EQ(made.barriers, 1);
    EXPECT_DOUBLE_EQ(made.messages, others);
    EXPECT_DOUBLE_EQ(made.barrier_nanoseconds, barrier);
}

TEST_P(Formulas, OfABroadcastByPullWhichTheRootsLinkLimits) {
    const CollectiveCost large = cost(NPUSHMEM_COLL_BROADCAST, 1U << 20, n, Method::pull);
    EXPECT_NEAR(large.nanoseconds, std::max(get_of(1U << 20), others * put_of(1U << 20)) + 2 * barrier, 1e-3);
    const CollectiveCost small = cost(NPUSHMEM_COLL_BROADCAST, 8, 3, Method::pull);
    EXPECT_DOUBLE_EQ(small.nanoseconds, get_of(8) + 2 * barrier_of(3));
}

TEST_P(Formulas, OfABroadcastByScatter) {
    const auto bytes = static_cast<std::uint64_t>(n) * 4096;
    const CollectiveCost made = cost(NPUSHMEM_COLL_BROADCAST, bytes, n, Method::scatter);
    EXPECT_NEAR(made.nanoseconds, std::max(get_of(4096), others * put_of(4096)) + others * get_of(4096) + 3 * barrier,
                1e-3);
}

TEST_P(Formulas, OfAnAlltoallByPull) {
    const CollectiveCost pull = cost(NPUSHMEM_COLL_ALLTOALL, 512, n, Method::pull);
    EXPECT_NEAR(pull.nanoseconds, others * get_of(512) + 2 * barrier, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Formulas, ::testing::Values(2, 3, 16, 1000));

// Too many hosts for messages with signals.
class FormulasOfManyHosts : public Formulas {};

TEST_P(FormulasOfManyHosts, OfAnAlltoallByPush) {
    const CollectiveCost push = cost(NPUSHMEM_COLL_ALLTOALL, 512, n, Method::push);
    EXPECT_NEAR(push.nanoseconds, others * put_of(512) + 2000 + barrier, 1e-3);
    EXPECT_NEAR(push.messages, n * others, 1e-3);
    EXPECT_NEAR(push.network_bytes, n * others * 512, 1);
}

// The sizes travel first, in records of 16 bytes.
TEST_P(FormulasOfManyHosts, OfACollect) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_COLLECT, 512, n, Method::push);
    EXPECT_NEAR(made.nanoseconds, others * (get_of(16) + put_of(512)) + 2000 + 2 * barrier, 1e-3);
}

TEST_P(FormulasOfManyHosts, OfAReductionOfCopies) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_REDUCE, 64, n, Method::published);
    EXPECT_NEAR(made.nanoseconds, others * get_of(64) + barrier, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Sizes, FormulasOfManyHosts, ::testing::Values(129, 1000));

TEST(CollectiveCosts, CountTheMembersOfTheNodeApart) {
    constexpr int members = 1000;
    const CollectiveCost made = cost(NPUSHMEM_COLL_ALLTOALL, 512, members, Method::push, 4);
    EXPECT_NEAR(made.messages, members * 996, 1e-3);
    EXPECT_NEAR(made.nanoseconds - made.barrier_nanoseconds, 996 * put_of(512) + 3 * (20 + 512 * 0.25) + 2000, 1e-3);
}

// Members that synchronise by messages with signals. Inside a node a read takes L + o, the announcement of a step o,
// and the members that wait find it after L + o.
constexpr double announcement = 10;
constexpr double notice = 100 + 10;
constexpr double flight = 1000 + 50;  // of a message, until it is found
double read_inside(double bytes) { return notice + bytes * 0.25; }

TEST(HostCosts, OfASmallBroadcastAreThoseOfOneMessageToEachLeader) {
    for (const int nodes : {2, 3, 16}) {
        const CollectiveCost made = cost(NPUSHMEM_COLL_BROADCAST, 8, nodes, Method::automatic);
        EXPECT_DOUBLE_EQ(made.nanoseconds, (nodes - 1) * put_of(8) + flight + announcement);
        EXPECT_EQ(made.barriers, 0);
        EXPECT_DOUBLE_EQ(made.messages, nodes - 1);
        EXPECT_DOUBLE_EQ(made.network_bytes, 8 * (nodes - 1));
    }
    const CollectiveCost of_pairs = cost(NPUSHMEM_COLL_BROADCAST, 8, 8, Method::automatic, 4);
    EXPECT_DOUBLE_EQ(of_pairs.nanoseconds, put_of(8) + flight + announcement + notice + read_inside(8));
}

// All send at the same time, and each message occupies its receiver as long as its sender.
TEST(HostCosts, OfAnAlltoallAreThoseOfItsMessages) {
    for (const int nodes : {2, 3, 128}) {
        const CollectiveCost made = cost(NPUSHMEM_COLL_ALLTOALL, 8192, nodes, Method::push);
        const double others = nodes - 1;
        EXPECT_NEAR(made.nanoseconds, others * put_of(8192) + flight + announcement, others * 50 + 1);
        EXPECT_GE(made.nanoseconds, others * put_of(8192) + flight + announcement);
        EXPECT_DOUBLE_EQ(made.messages, nodes * others);
        EXPECT_EQ(made.barriers, 0);
    }
}

TEST(HostCosts, OfALargeBroadcastCarryItOnceToTheHosts) {
    constexpr std::uint64_t bytes = 1U << 20;
    const CollectiveCost made = cost(NPUSHMEM_COLL_BROADCAST, bytes, 16, Method::hosts, 4);
    // The root's node sends the array once in shares, and the other nodes exchange these.
    EXPECT_NEAR(made.network_bytes, bytes * (1 + 2), 16);
    EXPECT_LT(made.nanoseconds, cost(NPUSHMEM_COLL_BROADCAST, bytes, 16, Method::push, 4).nanoseconds);
}

TEST(HostCosts, OfAnFcollectSendEachBlockOnceToEachHost) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_FCOLLECT, 8192, 16, Method::hosts, 4);
    EXPECT_DOUBLE_EQ(made.network_bytes, 16 * 3 * 8192);
    EXPECT_EQ(made.barriers, 0);
    // Each sends to three nodes, waits for its host, and reads what its neighbours have received.
    const double least = 3 * put_of(8192) + flight + announcement + notice + 3 * 3 * read_inside(8192);
    EXPECT_GE(made.nanoseconds, least);
    EXPECT_LE(made.nanoseconds, 1.5 * least);
}

TEST(HostCosts, OfASmallReductionAreOfOneMemberOfEachHost) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_REDUCE, 8, 16, Method::automatic, 4);
    EXPECT_DOUBLE_EQ(made.messages, 4 * 3);
    EXPECT_EQ(made.barriers, 0);
}

TEST(HostCosts, AreLessThanThoseOfBarriers) {
    for (const std::uint32_t collective : {NPUSHMEM_COLL_BROADCAST, NPUSHMEM_COLL_FCOLLECT, NPUSHMEM_COLL_REDUCE})
        for (const std::uint64_t bytes : {8U, 4096U}) {
            const CollectiveCost few = cost(collective, bytes, 128 * 8, Method::automatic, 8);
            const CollectiveCost many = cost(collective, bytes, 129 * 8, Method::automatic, 8);
            EXPECT_EQ(few.barriers, 0);
            EXPECT_GT(many.barriers, 0);
            EXPECT_LT(few.nanoseconds, many.nanoseconds) << collective << ", " << bytes << " bytes";
        }
}

TEST(HostCosts, OfUnevenNodes) { EXPECT_EQ(cost(NPUSHMEM_COLL_ALLTOALL, 64, 15, Method::automatic, 4).barriers, 0); }

// More members than a small exchange serves: they read the sizes from each other, between barriers, and then send.
TEST(HostCosts, OfACollectOfManyAreThoseOfReadsAndMessages) {
    constexpr int members = 100;
    constexpr double peers = 90;  // on other nodes
    const CollectiveCost made = cost(NPUSHMEM_COLL_COLLECT, 64, members, Method::push, 10);
    EXPECT_EQ(made.barriers, 1);
    EXPECT_DOUBLE_EQ(made.messages, 2 * members * peers);
    EXPECT_DOUBLE_EQ(made.network_bytes, members * peers * (16 + 64));
    const double reads = peers * get_of(16) + 9 * (100 + 10 + 16 * 0.25);
    EXPECT_GE(made.nanoseconds, made.barrier_nanoseconds + reads + peers * put_of(64) + flight);
    EXPECT_LE(made.nanoseconds, 1.2 * (made.barrier_nanoseconds + reads + peers * put_of(64) + flight));
}

TEST(CollectiveCosts, OfHostsNeedEvenNodes) {
    const auto cost_by_hosts = [](int members, int per_node) {
        return cost_of({NPUSHMEM_COLL_REDUCE, 8, Method::hosts}, {members, per_node}, cluster);
    };
    EXPECT_EQ(cost_by_hosts(15, 4).status().code(), Code::unsupported);
    EXPECT_EQ(cost_by_hosts(15 * 129, 129).status().code(), Code::ok);
    EXPECT_EQ(cost_by_hosts(129, 1).status().code(), Code::unsupported);
    EXPECT_TRUE(cost_by_hosts(512, 128).ok());
}

TEST(CollectiveCosts, OfTheBuiltInChoiceAreThoseOfItsMethod) {
    const auto automatic = [](std::uint64_t bytes) {
        return cost(NPUSHMEM_COLL_BROADCAST, bytes, 256, Method::automatic).nanoseconds;
    };
    EXPECT_EQ(automatic(64), cost(NPUSHMEM_COLL_BROADCAST, 64, 256, Method::push).nanoseconds);
    EXPECT_EQ(automatic(1U << 20), cost(NPUSHMEM_COLL_BROADCAST, 1U << 20, 256, Method::scatter).nanoseconds);
}

TEST(CollectiveCosts, AreOfSeveralNodesAndOfCollectives) {
    EXPECT_THAT(cost_of({NPUSHMEM_COLL_BROADCAST, 8}, {4, 4}, cluster).status().message(),
                HasSubstr("4 members are on one node of 4"));
    EXPECT_EQ(cost_of({NPUSHMEM_COLL_BARRIER, 0}, {4, 1}, cluster).status().code(), Code::argument);
}

}  // namespace
}  // namespace npushmem::simulate
