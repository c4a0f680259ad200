// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/layer_cost.hpp"

#include <gmock/gmock.h>

namespace npushmem::simulate {
namespace {

// o <= g, as the formulas assume.
constexpr Model layer_model{.node = {.latency = 100, .overhead = 10, .gap = 20, .per_byte = 0.25},
                            .network = {.latency = 1000, .overhead = 50, .gap = 70, .per_byte = 0.5}};

double put_far(double bytes) { return 70 + bytes * 0.5; }
double put_near(double bytes) { return 20 + bytes * 0.25; }
double get_near(double bytes) { return 100 + 10 + bytes * 0.25; }

constexpr double signal_bytes = 8;
constexpr double far_round_trip = 2 * 1000;

// Each token chooses all experts, so the routing is known.
LayerCall all_experts(int members) {
    return {.top_k = members, .tokens = 1, .dispatched_row = 100, .returned_row = 60};
}

LayerCost cost_of_layer(const LayerCall& call, const Team& team, const Model& model = layer_model) {
    const auto made = layer_cost(call, team, model);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? made.value() : LayerCost{};
}

constexpr double bytes_of_record = 384;  // 256 bytes and two counts, in lines of 128

TEST(LayerCosts, OfTwoPesOnTwoHosts) {
    const LayerCost made = cost_of_layer(all_experts(2), {2, 1});
    // To the other PE, then to itself: first the records, then the signals. The last acknowledgement ends a part.
    EXPECT_DOUBLE_EQ(made.counts,
                     put_far(bytes_of_record) + put_near(bytes_of_record) + put_far(signal_bytes) + far_round_trip);
    EXPECT_DOUBLE_EQ(made.tables, 2 * 2 * 4 * 0.25);
    // A row, its slot and its two choices.
    const double row_far = put_far(100) + put_far(4) + put_far(16);
    const double row_near = put_near(100) + put_near(4) + put_near(16);
    EXPECT_DOUBLE_EQ(made.rows, row_far + row_near + put_far(signal_bytes) + far_round_trip);
    EXPECT_DOUBLE_EQ(made.relays, 0);
    EXPECT_DOUBLE_EQ(made.combine, put_far(60) + put_near(60) + put_far(signal_bytes) + far_round_trip);
    EXPECT_DOUBLE_EQ(made.nanoseconds, made.counts + made.tables + made.rows + made.combine);
    EXPECT_EQ(made.messages, 2U + 4 + 2);
    EXPECT_EQ(made.messages_to_all, 4U);
    EXPECT_EQ(made.bytes, 384U + 100 + 4 + 16 + 60 + 3 * 8);
    EXPECT_EQ(made.record_bytes, 384U);
}

TEST(LayerCosts, OfFixedSlotsHaveRecordsBehindTheRows) {
    LayerCall call = all_experts(2);
    call.fixed_slots = true;
    const LayerCost made = cost_of_layer(call, {2, 1});
    EXPECT_DOUBLE_EQ(made.counts, 0);
    const double row_far = put_far(100) + put_far(4) + put_far(16);
    const double row_near = put_near(100) + put_near(4) + put_near(16);
    EXPECT_DOUBLE_EQ(made.rows, row_far + row_near + put_far(bytes_of_record) + put_near(bytes_of_record) +
                                    put_far(signal_bytes) + far_round_trip);
    EXPECT_EQ(made.messages_to_all, 3U);
    EXPECT_EQ(made.record_bytes, 384U);
}

// The row of the token travels once to the other node, with slots and choices for both PEs there. One row of another
// PE is copied inside the node in return.
TEST(LayerCosts, OfARowForEachNode) {
    const LayerCost made = cost_of_layer(all_experts(4), {4, 2});
    const double rest_far = put_far(4) + put_far(4 * 8);
    const double near = put_near(100) + put_near(4) + put_near(4 * 8);
    // In the order of the PEs behind this one; the last signal to the other node is the one before the last.
    EXPECT_DOUBLE_EQ(made.rows, 2 * near + put_far(100) + 2 * rest_far + put_near(signal_bytes) +
                                    2 * put_far(signal_bytes) + far_round_trip);
    const double signalled = put_near(signal_bytes) + 100 + 10;
    EXPECT_DOUBLE_EQ(made.relays, signalled + get_near(4 * 4) + get_near(100)) << "four slots, a row";
    EXPECT_EQ(made.messages, 3U * 4 + 2 + 3 * 2 + 1 + 3) << "to all, rows, slots and choices, relays, returned rows";
}

// In one node there are no relays, and a part ends with the last signal.
TEST(LayerCosts, OfOneNode) {
    const LayerCost made = cost_of_layer(all_experts(2), {2, 2});
    EXPECT_DOUBLE_EQ(made.combine, 2 * put_near(60) + put_near(signal_bytes) + 100 + 10);
    EXPECT_DOUBLE_EQ(made.relays, 0);
}

// Ten times the PEs: ten times the messages to all, and a hundred times the bytes of the records and of the tables.
TEST(LayerCosts, OfRecordsGrowWithTheSquareOfThePes) {
    const Model usual = default_model();
    const LayerCost small = cost_of_layer({}, {10'000, 8}, usual);
    const LayerCost large = cost_of_layer({}, {100'000, 8}, usual);
    EXPECT_EQ(small.messages_to_all, 4U * 9'999);
    EXPECT_EQ(large.messages_to_all, 4U * 99'999);
    EXPECT_NEAR(large.tables / small.tables, 100, 1e-9);
    EXPECT_NEAR(static_cast<double>(large.record_bytes) / static_cast<double>(small.record_bytes), 100, 1);
    EXPECT_GT(large.counts, 50 * small.counts);
    EXPECT_EQ(large.record_bytes, std::uint64_t{99'999} * (4 * 100'000 + 256)) << "no padding: a multiple of 128";
    EXPECT_GT(large.memory_bytes, 2 * large.record_bytes) << "of even and of odd epochs";
}

TEST(LayerCosts, GrowWithTokensChoicesAndRows) {
    const LayerCost plain = cost_of_layer({.tokens = 16}, {1000, 8});
    EXPECT_GT(cost_of_layer({.tokens = 32}, {1000, 8}).rows, plain.rows);
    EXPECT_LT(cost_of_layer({.top_k = 4, .tokens = 16}, {1000, 8}).rows, plain.rows);
    EXPECT_LT(cost_of_layer({.tokens = 16, .dispatched_row = 7000}, {1000, 8}).rows, plain.rows);
    EXPECT_GT(cost_of_layer({.tokens = 16, .returned_row = 20'000}, {1000, 8}).combine, plain.combine);
    EXPECT_EQ(cost_of_layer({.tokens = 16}, {1000, 8}).bytes, plain.bytes) << "by the seed";
}

TEST(LayerCosts, RejectLayersThatDoNotExist) {
    const auto code = [](const LayerCall& call, const Team& team) {
        return layer_cost(call, team, layer_model).status().code();
    };
    EXPECT_EQ(code({}, {1, 1}), Code::argument);
    EXPECT_EQ(code({}, {100, 0}), Code::argument);
    EXPECT_EQ(code({.experts_per_pe = 0}, {100, 8}), Code::argument);
    EXPECT_EQ(code({.experts_per_pe = 1 << 20}, {1 << 20, 8}), Code::argument);
    EXPECT_EQ(code({}, {4, 2}), Code::argument) << "8 choices of 4 experts";
    EXPECT_EQ(code({.top_k = 65}, {100, 8}), Code::argument);
    EXPECT_EQ(code({.top_k = 0}, {100, 8}), Code::argument);
    EXPECT_EQ(code({.tokens = 0}, {100, 8}), Code::argument);
    EXPECT_EQ(code({.dispatched_row = 0}, {100, 8}), Code::argument);
    EXPECT_EQ(code({.returned_row = 0}, {100, 8}), Code::argument);
}

}  // namespace
}  // namespace npushmem::simulate
