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

TEST_P(Formulas, OfAnAlltoall) {
    const CollectiveCost push = cost(NPUSHMEM_COLL_ALLTOALL, 512, n, Method::push);
    EXPECT_NEAR(push.nanoseconds, others * put_of(512) + 2000 + barrier, 1e-3);
    EXPECT_NEAR(push.messages, n * others, 1e-3);
    EXPECT_NEAR(push.network_bytes, n * others * 512, 1);
    const CollectiveCost pull = cost(NPUSHMEM_COLL_ALLTOALL, 512, n, Method::pull);
    EXPECT_NEAR(pull.nanoseconds, others * get_of(512) + 2 * barrier, 1e-3);
}

// The sizes travel first, in records of 16 bytes.
TEST_P(Formulas, OfACollect) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_COLLECT, 512, n, Method::push);
    EXPECT_NEAR(made.nanoseconds, others * (get_of(16) + put_of(512)) + 2000 + 2 * barrier, 1e-3);
}

TEST_P(Formulas, OfAReductionOfCopies) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_REDUCE, 64, n, Method::published);
    EXPECT_NEAR(made.nanoseconds, others * get_of(64) + barrier, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Formulas, ::testing::Values(2, 3, 16, 1000));

TEST(CollectiveCosts, CountTheMembersOfTheNodeApart) {
    const CollectiveCost made = cost(NPUSHMEM_COLL_ALLTOALL, 512, 8, Method::push, 4);
    EXPECT_DOUBLE_EQ(made.messages, 8 * 4);
    EXPECT_NEAR(made.nanoseconds - made.barrier_nanoseconds, 4 * put_of(512) + 3 * (20 + 512 * 0.25) + 2000, 1e-3);
}

// 4 nodes of 4 members. Inside a node a read takes L + o, and a write the gap.
class FormulasOfHosts : public ::testing::Test {
protected:
    static constexpr int members = 16;
    static constexpr double other_nodes = 3;
    static constexpr double neighbours = 3;
    static double read_inside(double bytes) { return 100 + 10 + bytes * 0.25; }
    static CollectiveCost by_hosts(std::uint32_t collective, std::uint64_t bytes) {
        return cost(collective, bytes, members, Method::hosts, 4);
    }
};

TEST_F(FormulasOfHosts, OfASmallReduction) {
    const CollectiveCost made = by_hosts(NPUSHMEM_COLL_REDUCE, 8);
    EXPECT_NEAR(made.nanoseconds - made.barrier_nanoseconds,
                neighbours * read_inside(8) + other_nodes * put_of(16) + 2000 + read_inside(4 * 16), 1e-3);
    EXPECT_EQ(made.barriers, 2);
    EXPECT_DOUBLE_EQ(made.messages, 4 * other_nodes) << "one member of each node sends";
}

TEST_F(FormulasOfHosts, OfAnFcollect) {
    const CollectiveCost made = by_hosts(NPUSHMEM_COLL_FCOLLECT, 512);
    EXPECT_NEAR(made.nanoseconds - made.barrier_nanoseconds,
                other_nodes * put_of(512) + 2000 + neighbours * other_nodes * read_inside(512), 1e-3);
    EXPECT_EQ(made.barriers, 2);
    EXPECT_DOUBLE_EQ(made.network_bytes, members * other_nodes * 512);
}

TEST_F(FormulasOfHosts, OfABroadcast) {
    const CollectiveCost small = by_hosts(NPUSHMEM_COLL_BROADCAST, 64);
    EXPECT_DOUBLE_EQ(small.messages, other_nodes);
    EXPECT_EQ(small.barriers, 2);
    const CollectiveCost large = by_hosts(NPUSHMEM_COLL_BROADCAST, 1U << 20);
    EXPECT_EQ(large.barriers, 4);
    // The root's node sends the array once in shares, and the other nodes exchange these.
    EXPECT_NEAR(large.network_bytes, (1U << 20) * (1 + 2), 16);
}

TEST(CollectiveCosts, OfHostsNeedEvenNodes) {
    const auto cost_by_hosts = [](int members, int per_node) {
        return cost_of({NPUSHMEM_COLL_REDUCE, 8, Method::hosts}, {members, per_node}, cluster);
    };
    EXPECT_EQ(cost_by_hosts(15, 4).status().code(), Code::unsupported);
    EXPECT_EQ(cost_by_hosts(16, 1).status().code(), Code::unsupported);
    EXPECT_TRUE(cost_by_hosts(512, 128).ok());
}

TEST(CollectiveCosts, OfTheBuiltInChoiceAreThoseOfItsMethod) {
    const auto automatic = [](std::uint64_t bytes) {
        return cost(NPUSHMEM_COLL_BROADCAST, bytes, 64, Method::automatic).nanoseconds;
    };
    EXPECT_EQ(automatic(64), cost(NPUSHMEM_COLL_BROADCAST, 64, 64, Method::push).nanoseconds);
    EXPECT_EQ(automatic(1U << 20), cost(NPUSHMEM_COLL_BROADCAST, 1U << 20, 64, Method::scatter).nanoseconds);
}

TEST(CollectiveCosts, AreOfSeveralNodesAndOfCollectives) {
    EXPECT_THAT(cost_of({NPUSHMEM_COLL_BROADCAST, 8}, {4, 4}, cluster).status().message(),
                HasSubstr("4 members are on one node of 4"));
    EXPECT_EQ(cost_of({NPUSHMEM_COLL_BARRIER, 0}, {4, 1}, cluster).status().code(), Code::argument);
}

}  // namespace
}  // namespace npushmem::simulate
