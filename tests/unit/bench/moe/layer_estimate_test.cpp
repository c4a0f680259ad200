// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "bench/moe/layer_estimate.hpp"

namespace npushmem::moe {

namespace {

constexpr std::int32_t ranks = 8;
constexpr EstimateRows whole_rows{7168, ElementType::bfloat16};
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

struct Estimates {
    npu::VirtualReport dispatch;
    npu::VirtualReport sent;  // the rows of the combine
    npu::VirtualReport combine;
};

Estimates estimate(const Routing& routing, const EstimateCores& cores, const npu::DeviceModel& model = {},
                   const EstimateRows& rows = whole_rows) {
    npu::VirtualTime of_dispatch(model);
    const Status dispatched = estimate_dispatch(of_dispatch, routing, rows, cores);
    EXPECT_TRUE(dispatched.ok()) << dispatched.message();
    npu::VirtualTime of_combine(model);
    const auto sent = estimate_combine(of_combine, routing, rows, cores);
    EXPECT_TRUE(sent.ok()) << sent.status().message();
    return {of_dispatch.report(), sent.value(), of_combine.report()};
}

double total_bytes(const npu::VirtualReport& report) {
    double bytes = 0;
    for (const auto& link : report.links) bytes += link.bytes;
    return bytes;
}

// Prefill on a server of eight: the links' bandwidth limits the sender.
TEST(LayerEstimate, KeepsTheLinksOfAServerBusy) {
    constexpr std::int32_t tokens = 96;
    const Routing routing = even_routing(tokens);
    const npu::VirtualReport report = estimate(routing, {}).sent;
    const LinksBusy busy = links_busy(report, ranks, 8);
    EXPECT_GE(busy.min, 0.9);
    EXPECT_LE(busy.max, 1);
    const double min_seconds = tokens * static_cast<double>(row.value()) / npu::DeviceModel{}.hccs_rate / 1e9;
    EXPECT_NEAR(busy.mean, min_seconds / report.seconds(), 1e-9) << "what they carry is what the routing says";
    EXPECT_EQ(estimate(routing, {}).sent.seconds(), report.seconds()) << "the same on every machine";
}

TEST(LayerEstimate, FollowsTheModel) {
    const Routing routing = even_routing(16);
    npu::DeviceModel half;
    half.hccs_rate /= 2;
    npu::DeviceModel slow;
    slow.hccs_latency *= 2;
    const Estimates whole_rate = estimate(routing, {});
    const Estimates half_rate = estimate(routing, {}, half);
    const Estimates slower = estimate(routing, {}, slow);
    EXPECT_GT(half_rate.sent.seconds(), 1.5 * whole_rate.sent.seconds());
    EXPECT_LE(half_rate.sent.seconds(), 2 * whole_rate.sent.seconds());
    for (auto part : {&Estimates::dispatch, &Estimates::sent, &Estimates::combine}) {
        EXPECT_GT((half_rate.*part).seconds(), (whole_rate.*part).seconds());
        EXPECT_GT((slower.*part).seconds(), (whole_rate.*part).seconds());
    }
}

// The sums read each row from the rank's own memory, and use the vector pipe.
TEST(LayerEstimate, TheCombineEndsWithTheSums) {
    const Routing routing = even_routing(64);
    const Estimates of = estimate(routing, {});
    npu::DeviceModel model;
    const double rows = 64 * 8;
    const double read = rows * static_cast<double>(row.value()) / (model.gm_rate * 1e9);
    EXPECT_GT(of.combine.seconds(), of.sent.seconds() + read);
    model.vector_rate /= 100;
    EXPECT_GT(estimate(routing, {}, model).combine.seconds(), 2 * of.combine.seconds());
    EXPECT_NEAR(estimate(routing, {}, model).sent.seconds(), of.sent.seconds(), 1e-12);
    EXPECT_EQ(total_bytes(of.combine), total_bytes(of.sent)) << "no row crosses a link again";
}

TEST(LayerEstimate, ADispatchSendsRowsSlotsAndCounts) {
    const Routing routing = even_routing(64);
    const double rows = 8 * 64 * 7;  // to other ranks
    const double of_rows = rows * static_cast<double>(row.value());
    const double with_slots = of_rows + rows * sizeof(std::uint32_t);
    const double packed = total_bytes(estimate(routing, {}).dispatch);
    EXPECT_GT(packed, with_slots);
    EXPECT_LT(packed, with_slots + 56 * 1024) << "counts of 32 experts";
    EstimateRows rows_of = whole_rows;
    rows_of.fixed_slots = true;
    EXPECT_EQ(total_bytes(estimate(routing, {}, {}, rows_of).dispatch), packed);
    EXPECT_LT(estimate(routing, {}, {}, rows_of).dispatch.seconds(), estimate(routing, {}).dispatch.seconds())
        << "which waits for the others once more";
    rows_of.quantized = true;
    const double narrow = total_bytes(estimate(routing, {}, {}, rows_of).dispatch);
    EXPECT_NEAR(packed - narrow, rows * static_cast<double>(14336 - 7424), 1) << "with scales, in whole lines";
}

TEST(LayerEstimate, ADispatchUsesAllCores) {
    const Routing routing = even_routing(96);
    EXPECT_LT(estimate(routing, {20, 2}).dispatch.seconds(), 0.9 * estimate(routing, {4, 2}).dispatch.seconds());
}

// Why cores share a destination: one core waits for each of its copies to arrive.
TEST(LayerEstimate, OneCorePerDestinationDoesNotFillALink) {
    const Routing routing = even_routing(16);
    EXPECT_LT(links_busy(estimate(routing, {4, 2}).sent, ranks, 8).max, 0.5);
}

TEST(LayerEstimate, LinksWithoutRowsAreIdle) {
    Routing routing = even_routing(2);
    for (auto& ids : routing.expert_ids) ids.assign(ids.size(), 0);
    const LinksBusy busy = links_busy(estimate(routing, {}).sent, ranks, 8);
    EXPECT_EQ(busy.min, 0);
    EXPECT_GT(busy.max, 0);
    EXPECT_NEAR(busy.mean, busy.max * 7 / 56, 1e-9) << "rank 0 has the expert, and a link to each of the others";
}

// Links exist within a group only; each rank has a port to other groups.
TEST(LayerEstimate, DistinguishesLinksFromPorts) {
    const npu::VirtualReport report = estimate(even_routing(4, 16), {2, 2}).sent;
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

TEST(LayerEstimate, FailsWithoutEnoughMemory) {
    npu::VirtualTime time;
    const EstimateRows rows{std::int64_t{1} << 55};
    EXPECT_FALSE(estimate_dispatch(time, even_routing(1), rows, {}).ok());
    EXPECT_FALSE(estimate_combine(time, even_routing(1), rows, {}).ok());
}

}  // namespace

}  // namespace npushmem::moe
