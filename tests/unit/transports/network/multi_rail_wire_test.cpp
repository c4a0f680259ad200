// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/multi_rail_wire.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/unit/transports/network/network_world.hpp"
#include "transports/network/address_codec.hpp"

namespace npushmem::network {
namespace {

using fakes::data_words;
using fakes::flag_word;
using fakes::World;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t stripe_bytes = 128;

// PEs with two ports, and data that is long enough to be striped.
class RailsTest : public ::testing::Test {
protected:
    RailsTest() : world_(Delivery::in_order_on_completion) {
        world_.add_rail(stripe_bytes);
        std::iota(data_.begin(), data_.end(), 1000U);
    }
    Code put(std::size_t index, std::uint64_t* from, std::size_t count, std::uint64_t queue) {
        return world_.finish([&] { return world_.at(0).put(queue, world_.rma(1, index, from, count), nullptr); });
    }
    Code put_long() { return put(0, data_.data(), data_.size(), world_.queue[0]); }
    Code quiet_on(std::uint64_t queue) {
        return world_.finish([&] { return world_.at(0).quiet(queue); });
    }
    void step(int times) {
        for (; times > 0; --times) world_.step();
    }
    bool data_is_there() {
        for (std::size_t i = 0; i < data_.size(); ++i)
            if (world_.word(1, i) != data_[i]) return false;
        return true;
    }
    std::string next_event() {
        npushmem_event event{};
        return world_.at(0).poll_event(event) == Code::ok ? event.message : "";
    }
    void hold_second() { world_.rails[0]->hold = std::pair(0, 0U); }
    void let_go() { world_.rails[0]->hold = {}; }
    // A queue whose lane uses the second rail; the first queue uses the first.
    std::uint64_t queue_over_second() {
        const std::uint64_t out = world_.at(0).create_queue().value();
        std::uint64_t word = 7;
        for (const auto queue : {world_.queue[0], out}) {
            EXPECT_EQ(put(flag_word, &word, 1, queue), Code::ok);
            EXPECT_EQ(quiet_on(queue), Code::ok);
        }
        return out;
    }
    fakes::FakeWire& first(int pe = 0) { return *world_.wires[static_cast<std::size_t>(pe)]; }
    fakes::FakeWire& second(int pe = 0) { return *world_.more_wires[static_cast<std::size_t>(pe)][0]; }

    World world_;
    std::array<std::uint64_t, data_words> data_{};
};

TEST_F(RailsTest, LongTransfersUseAllRailsAndShortOnesTheFirst) {
    world_.start();
    std::uint64_t word = 7;
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_THAT(second().used, IsEmpty());
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_TRUE(data_is_there());
    EXPECT_NEAR(static_cast<double>(first().bytes_written), sizeof data_ / 2.0 + 8, 64);
    EXPECT_EQ(first().bytes_written + second().bytes_written, sizeof data_ + 8);
    std::array<std::uint64_t, data_words> back{};
    ASSERT_EQ(world_.finish([&] {
        return world_.at(0).get(world_.queue[0], world_.rma(1, 0, back.data(), back.size()), nullptr);
    }),
              Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_EQ(back, data_);
}

TEST_F(RailsTest, ContextsTakeRailsRoundRobin) {
    world_.start();
    std::uint64_t word = 7;
    ASSERT_EQ(put(0, &word, 1, world_.queue[0]), Code::ok);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(put(0, &word, 1, world_.at(0).create_queue().value()), Code::ok);
    EXPECT_THAT(first().used, ElementsAre(LaneId{1, 0}, LaneId{1, 2}));
    EXPECT_THAT(second().used, ElementsAre(LaneId{1, 1}, LaneId{1, 3}));
}

TEST_F(RailsTest, APeerWithOnePortIsServedOverOne) {
    world_.has_rails[1] = false;
    world_.start();
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_TRUE(data_is_there());
    std::uint64_t word = 7;
    ASSERT_EQ(put(0, &word, 1, world_.at(0).create_queue().value()), Code::ok);
    EXPECT_THAT(second().used, IsEmpty());
    const npushmem_rma back{0, 0, world_.remote.at({1, 0}), 0, data_.data(), sizeof data_};
    EXPECT_EQ(world_.finish([&] { return world_.at(1).put(world_.queue[1], back, nullptr); }), Code::ok);
    EXPECT_EQ(world_.finish([&] { return world_.at(1).quiet(world_.queue[1]); }), Code::ok);
    EXPECT_EQ(world_.word(0, data_words - 1), data_.back());
}

// Unconnected planes: a wrong pairing gives an error of the fake wire.
class PlanesTest : public RailsTest {
protected:
    // Transfers over all common planes, both ways.
    void exchange() {
        ASSERT_EQ(put_long(), Code::ok);
        EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
        EXPECT_TRUE(data_is_there());
        const npushmem_rma back{0, 0, world_.remote.at({1, 0}), 0, data_.data(), sizeof data_};
        EXPECT_EQ(world_.finish([&] { return world_.at(1).put(world_.queue[1], back, nullptr); }), Code::ok);
        EXPECT_EQ(world_.finish([&] { return world_.at(1).quiet(world_.queue[1]); }), Code::ok);
        EXPECT_EQ(world_.word(0, data_words - 1), data_.back());
    }
    // The text of the transport map.
    std::string lane_id(int from, int to) {
        const Bytes address = world_.at(to).address().value();
        return world_.at(from).reach(world_.peer(to, address)).why;
    }
    fakes::FakeWire& port(int pe, std::size_t index) { return *world_.more_wires[static_cast<std::size_t>(pe)][index]; }
};

TEST_F(PlanesTest, ConnectsPortsOfOnePlaneInAnyOrder) {
    world_.planes = {{{0, 1}, {1, 0}, {0, 1}}};
    world_.start();
    exchange();
    for (const int pe : {0, 1})
        for (const std::size_t index : {0U, 1U}) EXPECT_GT(port(pe, index).bytes_written, 0U);
    EXPECT_EQ(lane_id(0, 1), "plane 0 -> plane 0, rail 0 on both ends; plane 1 -> plane 1, rail 1 on both ends");
    EXPECT_EQ(lane_id(1, 0), lane_id(0, 1)) << "both rely on the same plane";
}

TEST_F(PlanesTest, WithPortsMissingOnOneSideTheCommonOnesAreUsed) {
    world_.add_rail(stripe_bytes);
    world_.planes = {{{0, 1, 2}, {2, 1}, {2}}};
    world_.start();
    exchange();
    EXPECT_THAT(port(0, 0).linked, IsEmpty()) << "no peer is on that plane";
    EXPECT_GT(port(0, 1).bytes_written, 0U);
    EXPECT_GT(port(0, 2).bytes_written, 0U);
    EXPECT_EQ(lane_id(0, 2), "plane 2 -> plane 2, rail 2 on both ends");
}

TEST_F(PlanesTest, TheMapListsTheConnectedPairs) {
    world_.planes = {{{1, 0}, {0, 1}, {1}}};
    world_.start();
    EXPECT_THAT(port(0, 0).linked, ElementsAre(lane_id(0, 2), lane_id(0, 2)));
    EXPECT_EQ(lane_id(0, 1), port(0, 0).linked[0] + "; " + port(0, 1).linked[0]);
}

TEST_F(PlanesTest, WithoutACommonRailTheReasonIsStated) {
    world_.planes = {{{0, 1}, {0, 1}, {0, 1}}};
    world_.start(false);
    const Bytes elsewhere = encode(EndpointAddress{"fake", {std::byte{0}, std::byte{7}, std::byte{7}, std::byte{0}}});
    EXPECT_EQ(world_.at(1).reach(world_.peer(0, elsewhere)).why,
              "plane 0 -> plane 7, rails 0 and 7, no rail in common");
    const Status refused = world_.at(1).connect(world_.peer(0, elsewhere));
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("cannot reach PE 0"), HasSubstr("no rail in common")));
}

TEST_F(PlanesTest, MalformedAddressesAreRejected) {
    world_.planes = {{{0, 1}, {0, 1}, {0, 1}}};
    world_.start(false);
    for (const std::size_t bytes : {0U, 3U, 9U}) {
        const Bytes wrong = encode(EndpointAddress{"fake", Bytes(bytes)});
        const Reach found = world_.at(1).reach(world_.peer(0, wrong));
        EXPECT_FALSE(found.reachable());
        EXPECT_THAT(found.why, HasSubstr("not addresses of ports: each has 4"));
        EXPECT_EQ(world_.at(1).connect(world_.peer(0, wrong)).code(), Code::protocol);
    }
    const Bytes unsound = encode(EndpointAddress{"fake", Bytes(8, std::byte{1})});
    EXPECT_THAT(world_.at(1).reach(world_.peer(0, unsound)).why, HasSubstr("not an address of the fake wire"));
}

TEST_F(PlanesTest, APeerDependsOnTheFirstRailThatItHasInCommon) {
    world_.planes = {{{0, 1}, {1}, {0, 1}}};
    world_.start();
    port(0, 1).fail_with = Code::peer_dead;
    std::uint64_t word = 7;
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::peer_dead);
    EXPECT_THAT(next_event(), HasSubstr("PE 1 on host elsewhere is lost"));
}

TEST_F(PlanesTest, TheFirstRailOfOnePeerMayBeTheSecondOfAnother) {
    world_.planes = {{{0, 1}, {0, 1}, {1}}};
    world_.start();
    const std::uint64_t over_second = queue_over_second();
    port(0, 1).fail_with = Code::peer_dead;
    std::uint64_t word = 8;
    ASSERT_EQ(put(flag_word, &word, 1, over_second), Code::ok);
    EXPECT_EQ(quiet_on(over_second), Code::system) << "PE 1 lives: its first rail is the other";
}

TEST_F(RailsTest, OnlyAFenceWaitsForStripesInFlight) {
    world_.start();
    hold_second();
    ASSERT_EQ(put_long(), Code::ok);
    std::uint64_t word = 7;
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    step(20);
    EXPECT_EQ(world_.word(1, flag_word), 7U) << "nobody asked for an order";
    ASSERT_EQ(world_.at(0).fence(world_.queue[0]), Code::ok);
    word = 8;
    const auto put_flag = [&] {
        return world_.at(0).put(world_.queue[0], world_.rma(1, flag_word, &word, 1), nullptr);
    };
    const auto op = world_.atomic(1, NPUSHMEM_ATOMIC_SET, flag_word + 1, 9);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(put_flag(), Code::again);
        EXPECT_EQ(world_.at(0).atomic(world_.queue[0], op, nullptr), Code::again);
        EXPECT_EQ(world_.at(0).quiet(world_.queue[0]), Code::again);
        world_.step();
    }
    EXPECT_FALSE(data_is_there());
    let_go();
    EXPECT_EQ(world_.finish(put_flag), Code::ok);
    EXPECT_TRUE(data_is_there());
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_EQ(world_.word(1, flag_word), 8U);
}

TEST_F(RailsTest, ASignalLeavesWhenAllStripesHaveArrived) {
    world_.start();
    hold_second();
    for (const int operation : {NPUSHMEM_SIGNAL_SET, NPUSHMEM_SIGNAL_ADD}) {
        hold_second();
        npushmem_put_signal op{};
        op.data = world_.rma(1, 0, data_.data(), data_.size());
        op.signal_remote = op.data.remote;
        op.signal_offset = flag_word * 8;
        op.signal = 1;
        op.operation = static_cast<std::uint32_t>(operation);
        ASSERT_EQ(world_.finish([&] { return world_.at(0).put_signal(world_.queue[0], op, nullptr); }), Code::ok);
        step(20);
        EXPECT_EQ(world_.word(1, flag_word), operation == NPUSHMEM_SIGNAL_SET ? 0U : 1U);
        EXPECT_EQ(world_.at(0).quiet(world_.queue[0]), Code::again);
        let_go();
        EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
        EXPECT_EQ(world_.word(1, flag_word), operation == NPUSHMEM_SIGNAL_SET ? 1U : 2U);
        EXPECT_TRUE(data_is_there());
    }
}

TEST_F(RailsTest, WithoutTheSecondRailTheRestContinues) {
    world_.start();
    const std::uint64_t other = world_.at(0).create_queue().value();
    std::uint64_t word = 7;
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    ASSERT_EQ(put(flag_word, &word, 1, other), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_EQ(quiet_on(other), Code::ok);
    second().lose = 1;
    step(2);
    EXPECT_EQ(put(flag_word, &word, 1, other), Code::system) << "its rail is lost";
    EXPECT_THAT(next_event(), AllOf(HasSubstr("a context's own lane to PE 1"), HasSubstr("over fake wire")));
    first().bytes_written = second().bytes_written = 0;
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_TRUE(data_is_there());
    EXPECT_EQ(first().bytes_written, sizeof data_);
    EXPECT_EQ(second().bytes_written, 0U);
    EXPECT_EQ(world_.at(0).destroy_queue(other), Code::ok);
    const std::uint64_t next = world_.at(0).create_queue().value();
    word = 9;
    ASSERT_EQ(put(flag_word, &word, 1, next), Code::ok);
    EXPECT_EQ(quiet_on(next), Code::ok);
    EXPECT_EQ(world_.word(1, flag_word), 9U);
}

TEST_F(RailsTest, APutThatLostAStripeLosesItsLane) {
    world_.start();
    std::uint64_t word = 7;
    const std::uint64_t over_second = world_.at(0).create_queue().value();
    const std::uint64_t over_first = world_.at(0).create_queue().value();
    for (const auto queue : {world_.queue[0], over_second, over_first}) {
        ASSERT_EQ(put(flag_word, &word, 1, queue), Code::ok);
        EXPECT_EQ(quiet_on(queue), Code::ok);
    }
    hold_second();
    ASSERT_EQ(put(0, data_.data(), data_.size(), over_first), Code::ok);
    EXPECT_EQ(world_.at(0).fence(over_first), Code::ok);
    second().lose = 1;
    word = 8;
    EXPECT_EQ(put(flag_word, &word, 1, over_first), Code::system);
    EXPECT_EQ(quiet_on(over_first), Code::system);
    step(20);
    EXPECT_EQ(world_.word(1, flag_word), 7U) << "what was fenced came without what was before";
    word = 9;
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_EQ(world_.word(1, flag_word), 9U);
}

TEST_F(RailsTest, APutThatLostAStripeOnLaneZeroLosesThePeer) {
    world_.start();
    hold_second();
    npushmem_put_signal op{};
    op.data = world_.rma(1, 0, data_.data(), data_.size());
    op.signal_remote = op.data.remote;
    op.signal_offset = flag_word * 8;
    op.signal = 1;
    ASSERT_EQ(world_.finish([&] { return world_.at(0).put_signal(world_.queue[0], op, nullptr); }), Code::ok);
    step(5);
    second().lose = 1;
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::system);
    EXPECT_EQ(world_.word(1, flag_word), 0U) << "a signal without its data";
    const std::string events = next_event() + next_event();
    EXPECT_THAT(events, AllOf(HasSubstr("PE 1 on host elsewhere is lost"), HasSubstr("over fake wire")));
    EXPECT_EQ(put_long(), Code::unreachable);
}

TEST_F(RailsTest, AGetThatLostAStripeFailsAlone) {
    world_.start();
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    hold_second();
    std::array<std::uint64_t, data_words> back{};
    const auto get = [&] {
        return world_.at(0).get(world_.queue[0], world_.rma(1, 0, back.data(), back.size()), nullptr);
    };
    ASSERT_EQ(world_.finish(get), Code::ok);
    second().lose = 1;
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::system);
    ASSERT_EQ(world_.finish(get), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
    EXPECT_EQ(back, data_);
}

TEST_F(RailsTest, ALostLaneIsReportedWhenTheOtherRailHasReleasedItsMemory) {
    world_.start();
    const std::uint64_t other = queue_over_second();
    ASSERT_EQ(put(0, data_.data(), data_.size(), other), Code::ok);
    EXPECT_EQ(quiet_on(other), Code::ok);
    world_.network.hold = std::pair(0, 0U);
    std::array<std::uint64_t, data_words> back{};
    std::uint64_t token = 0;
    ASSERT_EQ(
        world_.finish([&] { return world_.at(0).get(other, world_.rma(1, 0, back.data(), back.size()), &token); }),
        Code::ok);
    second().lose = 1;
    std::uint64_t word = 7;
    for (int i = 0; i < 20; ++i) {
        world_.step();
        EXPECT_EQ(world_.at(0).test(other, token), Code::again) << "the first rail has its part under way";
        EXPECT_EQ(world_.at(0).quiet(other), Code::again);
        if (i > 0) {  // once it knows
            EXPECT_EQ(world_.at(0).put(other, world_.rma(1, flag_word, &word, 1), nullptr), Code::again);
        }
    }
    EXPECT_EQ(back.front(), 0U);
    EXPECT_EQ(next_event(), "");
    world_.network.hold = {};
    EXPECT_EQ(world_.finish([&] { return world_.at(0).test(other, token); }), Code::system);
    EXPECT_EQ(back.front(), data_.front()) << "it came after the test said otherwise";
    EXPECT_EQ(put(flag_word, &word, 1, other), Code::system);
    EXPECT_THAT(next_event(), HasSubstr("PE 1"));
    ASSERT_EQ(put(flag_word, &word, 1, world_.queue[0]), Code::ok);
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::ok);
}

TEST_F(RailsTest, ALostLaneStartsNoOperation) {
    world_.start();
    const std::uint64_t other = queue_over_second();
    world_.network.room = 0;
    ASSERT_EQ(put(0, data_.data(), data_.size(), other), Code::ok) << "a part of it waits";
    second().lose = 1;
    (void)world_.at(0).progress();
    world_.network.room = 1000;
    EXPECT_EQ(quiet_on(other), Code::system);
    step(20);
    EXPECT_EQ(world_.word(1, 0), 0U);
}

TEST_F(RailsTest, WithoutTheFirstRailThePeerIsLost) {
    world_.start();
    hold_second();
    ASSERT_EQ(put_long(), Code::ok);
    first().lose = 1;
    EXPECT_EQ(quiet_on(world_.queue[0]), Code::peer_dead);
    EXPECT_THAT(next_event(), HasSubstr("PE 1 on host elsewhere is lost"));
    EXPECT_EQ(put_long(), Code::peer_dead);
}

TEST_F(RailsTest, UsesAConnectingRailLaterAndASilentOneNever) {
    world_.start();
    second().ready = Readiness::connecting;
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_EQ(second().bytes_written, 0U);
    const std::uint64_t other = world_.at(0).create_queue().value();
    std::uint64_t word = 7;
    EXPECT_EQ(world_.at(0).put(other, world_.rma(1, 0, &word, 1), nullptr), Code::again) << "soon it is";
    second().ready = Readiness::unreachable;
    EXPECT_EQ(put(0, &word, 1, other), Code::ok);
    EXPECT_THAT(first().used, Contains(LaneId{1, 1}));
    second().ready = Readiness::ready;
    ASSERT_EQ(put_long(), Code::ok);
    EXPECT_THAT(second().used, ElementsAre(LaneId{1, 0}));
}

TEST_F(RailsTest, ADestroyedContextLeaksNothing) {
    NetworkSettings settings;
    settings.thread = false;
    settings.peer_timeout = std::chrono::milliseconds(5);
    World world(Delivery::in_order_on_completion, 1, settings);
    world.add_rail(stripe_bytes);
    world.start();
    const std::uint64_t other = world.at(0).create_queue().value();
    std::uint64_t word = 7;
    const auto put = [&](std::uint64_t queue, std::uint64_t* from, std::size_t count) {
        return world.finish([&] { return world.at(0).put(queue, world.rma(1, 0, from, count), nullptr); });
    };
    ASSERT_EQ(put(world.queue[0], &word, 1), Code::ok);
    ASSERT_EQ(put(other, &word, 1), Code::ok);
    world.rails[0]->hold = std::pair(0, 1U);
    ASSERT_EQ(put(other, data_.data(), data_.size()), Code::ok);
    EXPECT_EQ(world.at(0).destroy_queue(other), Code::ok);
    EXPECT_THAT(world.more_wires[0][0]->closed, ElementsAre(LaneId{1, 1}));
    world.rails[0]->hold = {};
    const std::uint64_t next = world.at(0).create_queue().value();
    ASSERT_EQ(put(next, data_.data(), data_.size()), Code::ok);
    EXPECT_EQ(world.finish([&] { return world.at(0).quiet(next); }), Code::ok);
    EXPECT_EQ(world.word(1, 0), data_[0]);
}

}  // namespace
}  // namespace npushmem::network
