// SPDX-License-Identifier: BSD-3-Clause
// Combines whose rows stay in place: the same bytes as those of copied rows, and the cases in which rows are copied.
#include "core/moe/direct/rows_in_place.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/unit/core/moe/combine_fixture.hpp"
#include "tests/unit/core/moe/dispatch/layer_fixture.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CombineConfig in_place(CombineConfig config) {
    config.audit = false;
    config.in_place = true;
    return config;
}

CombineConfig in_place(const CaseShape& shape, std::int64_t hidden, RowsPer rows_per) {
    CombineConfig config = in_place(layer_config(shape, hidden));
    config.rows_per = rows_per;
    return config;
}

// Runs `calls` layers in a row on each rank. prepare(pe): before the layer is created; symmetric(pe): whether the
// experts' rows lie in symmetric memory; then each rank expects that its rows stayed in place, or that they did not.
struct InPlaceCase {
    CaseShape shape;
    CombineConfig config;
    int calls = 3;
    int blocks = 20;
    bool window = true;
    std::function<void(LayerPe&)> prepare = [](LayerPe&) {};
    std::function<bool(const LayerPe&)> symmetric = [](const LayerPe&) { return true; };
    std::function<bool(const LayerPe&)> stays = [](const LayerPe&) { return true; };
};

void expect_case(const InPlaceCase& c) {
    Routing routing = random_routing(c.shape);
    if (c.config.rows_per == RowsPer::rank) use_inexact_weights(routing);
    LayerFixture bench(c.shape.ranks, c.config, c.blocks, c.window);
    bench.run([&](LayerPe& pe) {
        c.prepare(pe);
        ASSERT_TRUE(pe.open()) << pe.error();
        pe.use_symmetric_rows(c.symmetric(pe));
        for (int call = 0; call < c.calls; ++call) {
            ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, static_cast<std::uint64_t>(call)));
            const bool stays = c.stays(pe) && pe.plan().rows > Rows{0};
            EXPECT_EQ(pe.engine().combine().left_in_place(), stays) << "PE " << pe.pe() << ", call " << call;
        }
    });
}

constexpr RowsPer both_rows[] = {RowsPer::choice, RowsPer::rank};

TEST(RowsInPlace, EveryElementTypeAndRowLength) {
    for (const RowsPer rows_per : both_rows) {
        for (const ElementType type : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            for (const std::int64_t hidden : {1, 33, 1000}) {
                const CaseShape shape{3, 7, 5, 9, 41};
                CombineConfig config = in_place(shape, hidden, rows_per);
                config.input = type;
                config.output = type == ElementType::half ? ElementType::float32 : type;
                SCOPED_TRACE(fmt::format("{} elements of {}", hidden, name_of(type)));
                expect_case({shape, config});
            }
        }
    }
}

TEST(RowsInPlace, EveryNumberOfRanksExpertsAndChoicesOnFewCoresAndMany) {
    for (const RowsPer rows_per : both_rows) {
        for (const std::int32_t ranks : {1, 2, 8, 17}) {
            for (const auto& [experts, top_k] : {std::pair{1, 1}, {256, 32}, {40, 8}}) {
                for (const int blocks : {1, 20}) {
                    CaseShape shape{ranks, experts, top_k, 5, 43};
                    shape.absent = 0.2;
                    SCOPED_TRACE(fmt::format("{} ranks, {} experts, top-{}", ranks, experts, top_k));
                    expect_case({.shape = shape, .config = in_place(shape, 33, rows_per), .blocks = blocks});
                }
            }
        }
    }
}

TEST(RowsInPlace, GapsBeforeAlignedExperts) {
    for (const RowsPer rows_per : both_rows) {
        const CaseShape shape{3, 6, 2, 5, 44};
        CombineConfig config = in_place(shape, 40, rows_per);
        config.expert_alignment = 4;
        config.capacity += 16;
        const Routing routing = random_routing(shape);
        LayerFixture bench(shape.ranks, config);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open()) << pe.error();
            pe.use_symmetric_rows(true);
            for (std::uint64_t call = 0; call < 2; ++call) {
                ASSERT_TRUE(pe.dispatch(routing, call)) << pe.error();
                pe.run_experts(routing, call);
                ASSERT_TRUE(pe.combine()) << pe.error();
                EXPECT_TRUE(pe.engine().combine().left_in_place());
                EXPECT_EQ(pe.output_difference(routing), "");
            }
        });
    }
}

// Each rank decides for its own rows.
TEST(RowsInPlace, RowsOfSomeRanksOnly) {
    const CaseShape shape{4, 8, 4, 6, 45, 0.0};
    InPlaceCase c{shape, in_place(shape, 40, RowsPer::rank)};
    c.symmetric = c.stays = [](const LayerPe& pe) { return pe.pe() % 2 == 0; };
    expect_case(c);
    c.symmetric = [](const LayerPe&) { return true; };
    c.prepare = [](LayerPe& pe) { pe.config().in_place = pe.pe() % 2 == 0; };
    expect_case(c);
    c.config.rows_per = RowsPer::choice;
    expect_case(c);
}

TEST(RowsInPlace, CopiesRowsWhereTheyCannotStay) {
    const CaseShape shape{3, 6, 4, 6, 46, 0.0};
    InPlaceCase c{shape, in_place(shape, 40, RowsPer::rank)};
    c.stays = [](const LayerPe&) { return false; };
    const auto expect_with = [&](const char* why, const auto& change) {
        SCOPED_TRACE(why);
        InPlaceCase changed = c;
        change(changed);
        expect_case(changed);
    };
    expect_with("audit", [](InPlaceCase& changed) { changed.config.audit = true; });
    expect_with("mode stream", [](InPlaceCase& changed) { changed.config.mode = CombineMode::stream; });
    expect_with("mode chunked", [](InPlaceCase& changed) { changed.config.mode = CombineMode::chunked; });
    expect_with("private memory",
                [](InPlaceCase& changed) { changed.symmetric = [](const LayerPe&) { return false; }; });
    // Staged sums read no rows in place, so no rank may offer them.
    expect_with("staged sums of a rank", [](InPlaceCase& changed) {
        changed.prepare = [](LayerPe& pe) { pe.config().route = pe.pe() == 1 ? CopyRoute::staged : CopyRoute::direct; };
    });
    expect_with("rows of ranks that do not map all others", [](InPlaceCase& changed) {
        changed.prepare = [](LayerPe& pe) {
            if (pe.pe() != 1) pe.fabric().unmap(2 - pe.pe());
        };
        changed.stays = [](const LayerPe& pe) { return pe.pe() == 1; };
        changed.window = false;
    });
}

TEST(RowsInPlace, NeedNoWindowOverTheRanks) {
    const CaseShape shape{3, 6, 4, 6, 46, 0.0};
    expect_case({.shape = shape, .config = in_place(shape, 40, RowsPer::rank), .window = false});
}

// Ranks choose anew in each call, without anything between the calls.
TEST(RowsInPlace, RowsOfSomeCallsOnly) {
    const CaseShape shape{3, 6, 2, 5, 51};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, in_place(config_for(shape, 20)), 20, true, 1 << 20);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        std::byte* const symmetric = pe.use_symmetric_x();
        for (std::uint64_t call = 0; call < 60; ++call) {
            const bool stays = (call / 2 + static_cast<std::uint64_t>(pe.pe())) % 2 == 0;
            pe.put_x_in(stays ? symmetric : nullptr);
            pe.fill(call);
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(call), "");
            ASSERT_EQ(pe.engine().left_in_place(), stays);
        }
    });
}

// Rank 0 maps all ranks, but rank 2 does not map rank 0.
TEST(RowsInPlace, OffersNothingToARankThatDoesNotMapThisOne) {
    const CaseShape shape{3, 6, 4, 6, 47, 0.0};
    InPlaceCase c{shape, in_place(shape, 40, RowsPer::rank)};
    c.prepare = [](LayerPe& pe) {
        if (pe.pe() == 2) pe.fabric().unmap(0);
    };
    c.stays = [](const LayerPe& pe) { return pe.pe() == 1; };
    expect_case(c);
}

TEST(RowsInPlace, TablesOfTheCaller) {
    const CaseShape shape{3, 6, 2, 5, 32};
    const Routing routing = random_routing(shape);
    CombineFixture bench(shape.ranks, in_place(config_for(shape, 20)), 20, true, 1 << 20);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open() && pe.route(routing)) << pe.error();
        pe.use_symmetric_x();
        for (const bool same_order : {true, false}) {
            // Fragments in reverse order, with gaps.
            const CombinePlan plan = pe.engine().plan();
            std::vector<std::int32_t> offsets(plan.offset_table.size());
            std::vector<std::uint32_t> slots;
            for (std::size_t i = offsets.size(); i-- > 0;) {
                slots.push_back(no_slot);
                offsets[i] = static_cast<std::int32_t>(slots.size());
                const auto first = plan.slots.begin() + plan.offset_table[i];
                slots.insert(slots.end(), first, first + plan.length_table[i]);
                if (!same_order) std::reverse(slots.end() - plan.length_table[i], slots.end());
            }
            const Status status = pe.engine().set_plan({offsets, plan.length_table, slots});
            ASSERT_TRUE(status.ok()) << status.message();
            pe.fill(4);
            ASSERT_TRUE(pe.combine()) << pe.error();
            EXPECT_EQ(pe.first_difference(4), "");
            EXPECT_EQ(pe.engine().left_in_place(), same_order);
        }
    });
}

// The layer that has made the layout does not leave rows in place.
TEST(RowsInPlace, LayoutOfALayerOfAnotherMode) {
    for (const RowsPer rows_per : both_rows) {
        const CaseShape shape{3, 6, 4, 6, 48};
        const CombineConfig config = in_place(shape, 40, rows_per);
        const Routing routing = random_routing(shape);
        LayerFixture bench(shape.ranks, config);
        bench.run([&](LayerPe& pe) {
            LayerPe second(pe);
            pe.config().mode = CombineMode::stream;
            ASSERT_TRUE(pe.open() && second.open()) << pe.error() << second.error();
            second.use_symmetric_rows(true);
            ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, 1));
            const auto layout = pe.engine().layout();
            ASSERT_TRUE(layout.ok() && second.engine().set_layout(layout.value()).ok());
            ASSERT_TRUE(second.dispatch_cached(routing, 2)) << second.error();
            second.run_experts(routing, 2);
            ASSERT_TRUE(second.combine()) << second.error();
            EXPECT_TRUE(second.engine().combine().left_in_place());
            EXPECT_EQ(second.output_difference(routing), "");
        });
    }
}

// A rank waits for the ranks that read its rows. If one of these fails, the call of that rank ends.
TEST(RowsInPlace, ARefusedCallOfOneRankEndsTheCallsOfAllUntilAReset) {
    for (const RowsPer rows_per : both_rows) {
        const CaseShape shape{3, 6, 2, 5, 38, 0.0};
        CombineConfig config = in_place(shape, 20, rows_per);
        config.timeout = std::chrono::seconds(0);
        const Routing routing = random_routing(shape);
        LayerFixture bench(shape.ranks, config);
        bench.run([&](LayerPe& pe) {
            ASSERT_TRUE(pe.open()) << pe.error();
            pe.use_symmetric_rows(true);
            for (std::uint64_t round = 0; round < 3; ++round) {
                ASSERT_NO_FATAL_FAILURE(expect_layer(pe, routing, 2 * round));
                ASSERT_TRUE(pe.dispatch(routing, 2 * round + 1)) << pe.error();
                EXPECT_FALSE(pe.pe() == 1 ? pe.combine_nothing() : pe.combine());
                EXPECT_THAT(pe.error(), HasSubstr("x is null"));
                EXPECT_EQ(pe.error().starts_with("rank 1 has aborted"), pe.pe() != 1) << pe.error();
                ASSERT_TRUE(pe.reset()) << pe.error();
            }
        });
    }
}

// The receiver of rank 0 of two, whose own rows stay in place. Rank 1's rows have arrived.
class WaitingReader {
public:
    static constexpr std::uint64_t epoch = 5;

    // `word`: what rank 1 has stored as its acknowledgement. `signal`: what it has stored to announce its rows.
    // `offers`: it offers them.
    Status run(std::uint64_t word, std::uint64_t signal = epoch, bool offers = false) {
        const fakes::ThreadFabric fabric(world_, 0);
        const auto device = std::move(npu::Device::create({}, fabric)).value();
        std::fill_n(world_.base(0), world_.part(), std::byte{0});
        CombineReceive receive;
        receive.region = world_.base(0);
        receive.layout = layout_;
        receive.epoch = epoch;
        receive.num_ranks = 2;
        receive.timeout = std::chrono::milliseconds(50);
        receive.in_place.memory = {world_.base(0) + layout_.total().value(), in_place_};
        receive.in_place.offers_own_rows = true;
        std::memcpy(world_.base(0) + layout_.signal(0).value(), &epoch, sizeof epoch);
        std::memcpy(world_.base(0) + layout_.signal(1).value(), &signal, sizeof signal);
        *receive.in_place.memory.word(in_place_.offer(epoch, 0)) = 64;
        if (offers) *receive.in_place.memory.word(in_place_.offer(epoch, 1)) = 64;
        *receive.in_place.memory.word(in_place_.read(0)) = epoch;
        *receive.in_place.memory.word(in_place_.read(1)) = word;
        const Status launched = npu::launch(device->default_stream(), 2, moe_combine_receiver, receive);
        return launched.ok() ? device->default_stream().synchronize() : launched;
    }

private:
    SlotLayout layout_{2, Rows{1}, Bytes{64}};
    InPlaceLayout in_place_{2, 2};
    fakes::ThreadWorld world_{2, layout_.total().value() + in_place_.total().value()};
};

TEST(RowsInPlace, WaitsForTheReaders) {
    WaitingReader reader;
    EXPECT_TRUE(reader.run(5).ok());
    EXPECT_TRUE(reader.run(5 | abort_bit).ok()) << "an abort after its end does not change a call";
    const Status late = reader.run(4);
    EXPECT_EQ(late.code(), Code::timeout);
    EXPECT_THAT(late.message(), AllOf(HasSubstr("rank 0 waits until its rows have been read by rank 1"),
                                      HasSubstr("has read rows here until call 4")));
    const Status aborted = reader.run(4 | abort_bit);
    EXPECT_EQ(aborted.code(), Code::aborted);
    EXPECT_THAT(aborted.message(), HasSubstr("rank 1 has aborted"));
    EXPECT_EQ(reader.run(6).code(), Code::protocol) << "it cannot read what is not offered yet";
}

// It may have changed its rows while they were read.
TEST(RowsInPlace, RejectsRowsOfARankThatHasAborted) {
    WaitingReader reader;
    EXPECT_TRUE(reader.run(5, 5, true).ok());
    EXPECT_TRUE(reader.run(5, 5 | abort_bit, false).ok()) << "copied rows are complete";
    const Status aborted = reader.run(5, 5 | abort_bit, true);
    EXPECT_EQ(aborted.code(), Code::aborted);
    EXPECT_THAT(aborted.message(), HasSubstr("rank 1 has aborted"));
}

// In the words that others wait for, which a reset clears.
TEST(RowsInPlace, AnAbortReachesTheRanksThatWaitForReaders) {
    const CaseShape shape{2, 4, 2, 5, 50};
    const CombineConfig config = in_place(config_for(shape, 20));
    fakes::ThreadWorld world(2, 1 << 16);
    world.run([&](int pe) {
        fakes::ThreadMemory memory(world, pe);
        const fakes::ThreadFabric fabric(world, pe);
        const auto device = std::move(npu::Device::create({}, fabric)).value();
        auto blocks = CombineMemory::allocate(config, memory);
        ASSERT_TRUE(blocks.ok());
        const InPlaceMemory in_place = blocks.value().in_place();
        for (int rank = 0; rank < 2; ++rank) *in_place.word(in_place.layout.can_read(rank)) = 1;
        world.barrier();
        CombineSend send;
        send.num_ranks = 2;
        send.region = blocks.value().region();
        send.layout = blocks.value().layout();
        send.in_place.memory = in_place;
        ASSERT_TRUE(npu::launch(device->default_stream(), 2, moe_combine_signal_abort, send).ok());
        ASSERT_TRUE(device->default_stream().synchronize().ok());
        world.barrier();
        for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(*in_place.word(in_place.layout.read(rank)), abort_bit);
        blocks.value().clear();
        for (int rank = 0; rank < 2; ++rank) {
            EXPECT_EQ(*in_place.word(in_place.layout.read(rank)), 0U);
            EXPECT_EQ(*in_place.word(in_place.layout.can_read(rank)), 1U);
        }
        world.barrier();
    });
}

TEST(RowsInPlace, LayoutOfTheMemory) {
    // 3 ranks, 10 experts: at most 4 on a rank.
    constexpr InPlaceLayout layout(3, 10);
    EXPECT_EQ(layout.offer_bytes(), Bytes{128});
    EXPECT_EQ(layout.offer(6, 2), Bytes{256});
    EXPECT_EQ(layout.offer(7, 2), Bytes{640});
    EXPECT_EQ(layout.read(0), Bytes{768});
    EXPECT_EQ(layout.read(2), Bytes{1024});
    EXPECT_EQ(layout.can_read(2), Bytes{1032});
    EXPECT_EQ(layout.total(), Bytes{1152});
    EXPECT_EQ(InPlaceLayout(2, 256).offer_bytes(), Bytes{640}) << "8 + 128 * 4 bytes, in whole lines";
}

TEST(RowsInPlace, IsChosenForLongRows) {
    EXPECT_FALSE(choose_in_place(Bytes{1023}));
    EXPECT_TRUE(choose_in_place(Bytes{1024}));
}

}  // namespace
}  // namespace npushmem::moe
