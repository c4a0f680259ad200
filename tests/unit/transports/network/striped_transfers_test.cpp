// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/multi_rail_wire.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "tests/unit/transports/network/network_world.hpp"
#include "transports/network/address_codec.hpp"

namespace npushmem::network {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Records the events of a wire.
struct RecordingListener final : WireListener {
    void completed(WireContext& context, Code code, const std::string& /*why*/) override { done[&context] = code; }
    void arrived(std::span<const std::byte> /*message*/) override {}
    void lost(LaneId lane_id, Code /*code*/, const std::string& /*why*/) override { losses.push_back(lane_id); }
    std::map<WireContext*, Code> done;
    std::vector<LaneId> losses;
};

TEST(MultiRailWire, StripesInProportionToTheRatesAndWaitsForRoom) {
    std::array networks{std::make_unique<fakes::FakeNetwork>(2, Delivery::in_order_on_completion),
                        std::make_unique<fakes::FakeNetwork>(2, Delivery::in_order_on_completion)};
    std::vector<MultiRailWire::Rail> rails;
    std::vector<fakes::FakeWire*> wires;
    for (std::size_t i = 0; i < networks.size(); ++i) {
        auto made = networks[i]->make_wire(0);
        wires.push_back(static_cast<fakes::FakeWire*>(made.get()));
        rails.push_back({std::move(made), (i == 0 ? 300U : 100U) * 1'000'000'000ULL});
    }
    networks[1]->room = 1;
    MultiRailWire wire(0, std::move(rails), 128);
    ASSERT_TRUE(wire.address().ok());
    ASSERT_TRUE(wire.add_peer(1, wire.address().value()).ok());
    EXPECT_THAT(wire.traits().name, HasSubstr("fake wire and fake wire"));
    const std::uint64_t key = wire.import_key(1, Bytes(16)).value();
    EXPECT_FALSE(wire.import_key(1, Bytes(15)).ok());
    alignas(64) std::array<std::uint64_t, 512> there{};
    std::array<std::uint64_t, 512> here{};
    here.fill(3);
    const RemoteAddress place{{1, 0}, key, reinterpret_cast<std::uintptr_t>(there.data()), 0};
    std::array<WireContext, 3> contexts;
    networks[0]->room = 0;
    EXPECT_EQ(wire.write_signal(place, here.data(), sizeof here, place, 1, contexts[0]), Code::again);
    networks[0]->room = 1000;
    EXPECT_TRUE(wire.prepare_to_wait(WakeEvents::arrivals));
    for (auto* each : wires)
        EXPECT_THAT(each->wake_events_so_far(), ElementsAre(WakeEvents::arrivals)) << "nothing is left";
    ASSERT_EQ(wire.write(place, here.data(), sizeof here, contexts[0]), Code::ok);
    EXPECT_EQ(wires[0]->bytes_written, sizeof here * 3 / 4);
    EXPECT_EQ(wires[1]->bytes_written, sizeof here / 4);
    EXPECT_FALSE(wire.in_order({1, 0}));
    EXPECT_TRUE(wire.in_order({1, 1}));
    ASSERT_EQ(wire.write(place, here.data(), sizeof here, contexts[1]), Code::ok) << "a part of it waits";
    EXPECT_FALSE(wire.prepare_to_wait(WakeEvents::arrivals_and_completions));
    for (auto* each : wires) EXPECT_EQ(each->wake_events_so_far().back(), WakeEvents::arrivals_and_completions);
    ASSERT_EQ(wire.write(place, here.data(), sizeof here, contexts[2]), Code::ok) << "over one";
    RecordingListener listener;
    for (int i = 0; i < 10; ++i) {
        for (auto& network : networks) (void)network->step();
        (void)wire.progress(listener);
    }
    for (auto& context : contexts) EXPECT_EQ(listener.done.at(&context), Code::ok);
    EXPECT_EQ(there.back(), 3U);
    EXPECT_TRUE(wire.in_order({1, 0}));
    EXPECT_TRUE(wire.prepare_to_wait(WakeEvents::arrivals));
}

}  // namespace
}  // namespace npushmem::network
