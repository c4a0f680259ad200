// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "bench/moe/send_estimate.hpp"

namespace npushmem::moe {

namespace {

constexpr std::int32_t ranks = 8;
constexpr Bytes row{14336};

// Every rank has as many rows for each rank as for any other.
Routing even_routing(std::int32_t tokens, std::int32_t n = ranks) {
    Routing routing;
    routing.experts = 32;
    routing.top_k = 8;
    for (std::int32_t rank = 0; rank < n; ++rank) {
        auto& ids = routing.expert_ids.emplace_back();
        for (std::int32_t i = 0; i < tokens * routing.top_k; ++i) ids.push_back((i * 4 + i / 8) % routing.experts);
        routing.weights.emplace_back(ids.size(), 1.0F);
    }
    return routing;
}

npu::VirtualReport estimate(const Routing& routing, const EstimateCores& cores, const npu::DeviceModel& model = {}) {
    npu::VirtualTime time(model);
    const Status sent = estimate_send(time, routing, row, cores);
    EXPECT_TRUE(sent.ok()) << sent.message();
    return time.report();
}

// Prefill on a server of eight: the links' bandwidth limits the sender.
TEST(SendEstimate, KeepsTheLinksOfAServerBusy) {
    constexpr std::int32_t tokens = 96;
    const Routing routing = even_routing(tokens);
    const npu::VirtualReport report = estimate(routing, {});
    const LinksBusy busy = links_busy(report, ranks, 8);
    EXPECT_GE(busy.min, 0.9);
    EXPECT_LE(busy.max, 1);
    const double min_seconds = tokens * static_cast<double>(row.value()) / npu::DeviceModel{}.hccs_rate / 1e9;
    EXPECT_NEAR(busy.mean, min_seconds / report.seconds(), 1e-9) << "what they carry is what the routing says";
    EXPECT_EQ(estimate(routing, {}).seconds(), report.seconds()) << "the same on every machine";
}

TEST(SendEstimate, FollowsTheModel) {
    const Routing routing = even_routing(16);
    npu::DeviceModel half;
    half.hccs_rate /= 2;
    const double whole_rate = estimate(routing, {}).seconds();
    const double half_rate = estimate(routing, {}, half).seconds();
    EXPECT_GT(half_rate, 1.5 * whole_rate);
    EXPECT_LE(half_rate, 2 * whole_rate);
    npu::DeviceModel slow;
    slow.hccs_latency *= 2;
    EXPECT_GT(estimate(routing, {}, slow).seconds(), whole_rate);
}

// Why cores share a destination: one core waits for each of its copies to arrive.
TEST(SendEstimate, OneCorePerDestinationDoesNotFillALink) {
    const Routing routing = even_routing(16);
    EXPECT_LT(links_busy(estimate(routing, {4, 2}), ranks, 8).max, 0.5);
}

TEST(SendEstimate, LinksWithoutRowsAreIdle) {
    Routing routing = even_routing(2);
    for (auto& ids : routing.expert_ids) ids.assign(ids.size(), 0);
    const LinksBusy busy = links_busy(estimate(routing, {}), ranks, 8);
    EXPECT_EQ(busy.min, 0);
    EXPECT_GT(busy.max, 0);
    EXPECT_NEAR(busy.mean, busy.max * 7 / 56, 1e-9) << "rank 0 has the expert, and a link to each of the others";
}

// Links exist within a group only; each rank has a port to other groups.
TEST(SendEstimate, DistinguishesLinksFromPorts) {
    const npu::VirtualReport report = estimate(even_routing(4, 16), {2, 2});
    const LinksBusy links = links_busy(report, 16, 8);
    const LinksBusy ports = ports_busy(report, 16, 8);
    EXPECT_EQ(links.links, 2U * 8 * 7);
    EXPECT_EQ(ports.links, 2U * 16);
    const double expected =
        2 * static_cast<double>(row.value()) / npu::DeviceModel{}.hccs_rate / 1e9 / report.seconds();
    EXPECT_NEAR(links.mean, expected, 1e-9) << "two rows from each to each";
    EXPECT_NEAR(links.min, links.max, 1e-9);
    EXPECT_NEAR(ports.mean, 8 * expected, 1e-9) << "to eight others, at the rate of a link";
    EXPECT_NEAR(ports.min, ports.max, 1e-9);
    EXPECT_EQ(ports_busy(report, 8, 8).links, 0U);
    EXPECT_EQ(links_busy(report, 9, 8).links, 56U) << "the ninth is alone in its group";
}

TEST(SendEstimate, FailsWithoutEnoughMemory) {
    npu::VirtualTime time;
    EXPECT_FALSE(estimate_send(time, even_routing(1), Bytes{std::uint64_t{1} << 56}, {}).ok());
}

}  // namespace

}  // namespace npushmem::moe
