// SPDX-License-Identifier: BSD-3-Clause
// The sender's kernel alone: rows of any size in the right slots, and controls that the tests detect errors.
#include "core/moe/direct/combine_sender.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/moe/payload.hpp"
#include "core/moe/common/combine_plan.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"
#include "tests/fakes/thread_world.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {
namespace {

constexpr auto untouched = std::byte{0xEE};

// The PEs send one after another and need not wait, so one thread is enough.
class SenderWorld {
public:
    SenderWorld(const CaseShape& shape, std::size_t row_bytes)
        : shape_(shape),
          routing_(random_routing(shape)),
          layout_(shape.ranks, Rows{static_cast<std::uint64_t>(shape.tokens * shape.top_k)}, Bytes{row_bytes}),
          world_(shape.ranks, layout_.total().value() + 128) {
        for (int pe = 0; pe < shape.ranks; ++pe) {
            std::fill_n(world_.base(pe), world_.part(), untouched);
            plans_.push_back(
                build_combine_plan(views_of(routing_), ExpertPlacement(shape.experts, shape.ranks), pe).value());
        }
    }

    // The byte at `column` of the row for a slot of a rank.
    [[nodiscard]] std::byte expected(int rank, std::uint32_t slot, std::size_t column) const {
        const std::int32_t expert = routing_.expert_ids[static_cast<std::size_t>(rank)][slot];
        return static_cast<std::byte>(column_bits(row_seed({1, rank, slot, expert}), column));
    }

    void send(int pe, std::uint64_t epoch, CopyRoute route, int blocks) {
        const CombinePlan& plan = plans_[static_cast<std::size_t>(pe)];
        const std::vector<std::byte> x = payload(plan);
        const fakes::ThreadFabric fabric(world_, pe);
        const auto device = std::move(npu::Device::create({}, fabric)).value();
        CombineSend send = send_from(plan, layout_);
        send.x = x.data();
        send.region = world_.base(pe);
        send.epoch = epoch;
        send.route = route;
        ASSERT_TRUE(npu::launch(device->default_stream(), blocks, moe_combine_direct_sender, send).ok());
        const Status status = device->default_stream().synchronize();
        ASSERT_TRUE(status.ok()) << status.message();
    }

    // Returns "" or the first error in a rank's memory after all have sent, in `epoch` only.
    [[nodiscard]] std::string wrong(int rank, std::uint64_t epoch) const {
        std::vector<std::byte> image(layout_.total().value(), untouched);
        const auto& ids = routing_.expert_ids[static_cast<std::size_t>(rank)];
        for (std::uint32_t slot = 0; slot < ids.size(); ++slot) {
            if (ids[slot] < 0) continue;
            std::byte* row = image.data() + layout_.slot(epoch, slot).value();
            for (std::size_t c = 0; c < layout_.row_bytes().value(); ++c) row[c] = expected(rank, slot, c);
        }
        for (int source = 0; source < shape_.ranks; ++source) {
            std::memcpy(image.data() + layout_.signal(source).value(), &epoch, sizeof epoch);
        }
        const auto [at, there] = std::ranges::mismatch(image, std::span(world_.base(rank), image.size()));
        return at == image.end() ? "" : "rank " + std::to_string(rank) + ", byte " + std::to_string(at - image.begin());
    }

    [[nodiscard]] const SlotLayout& layout() const { return layout_; }
    [[nodiscard]] fakes::ThreadWorld& world() { return world_; }
    [[nodiscard]] std::vector<CombinePlan>& plans() { return plans_; }

private:
    [[nodiscard]] std::vector<std::byte> payload(const CombinePlan& plan) const {
        std::vector<std::byte> x(bytes_of(plan.rows, layout_.row_bytes()).value());
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
            for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
                const Fragment f = plan.fragment(expert, rank);
                for (std::uint64_t row = f.first.value(); row < f.first.value() + f.count.value(); ++row) {
                    for (std::size_t c = 0; c < layout_.row_bytes().value(); ++c) {
                        x[row * layout_.row_bytes().value() + c] = expected(rank, plan.slots[row], c);
                    }
                }
            }
        }
        return x;
    }

    CaseShape shape_;
    Routing routing_;
    SlotLayout layout_;
    fakes::ThreadWorld world_;
    std::vector<CombinePlan> plans_;
};

constexpr CopyRoute all_routes[] = {CopyRoute::staged, CopyRoute::direct, CopyRoute::streaming};

// Every byte of every receiver's memory: rows in their slots, signals, and no other change: not in the padding behind a
// row, a canary, or the other buffer.
void expect_exact_bytes(const CaseShape& shape, std::size_t row_bytes, CopyRoute route, int blocks) {
    SenderWorld world(shape, row_bytes);
    for (int pe = 0; pe < shape.ranks; ++pe) world.send(pe, 7, route, blocks);
    for (int rank = 0; rank < shape.ranks; ++rank) {
        ASSERT_EQ(world.wrong(rank, 7), "") << row_bytes << " bytes per row, " << name_of(route);
    }
}

TEST(CombineSender, EveryRowLengthAndElementSizeByteForByte) {
    for (const std::size_t hidden : {1, 7, 16, 17, 128, 1000, 2048}) {
        for (const std::size_t element : {1, 2, 4}) {
            for (const CopyRoute route : all_routes) {
                expect_exact_bytes({3, 6, 2, 5, static_cast<std::uint32_t>(hidden)}, hidden * element, route, 2);
            }
        }
    }
}

TEST(CombineSender, EveryNumberOfRanksOnFewCoresAndMany) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17}) {
        for (const std::int32_t experts : {1, 2, 8}) {
            for (const int blocks : {1, 3, 20}) {
                expect_exact_bytes({ranks, ranks * experts, 3, 4, 3}, 34, CopyRoute::staged, blocks);
            }
        }
    }
}

TEST(CombineSender, RowsAroundTheStagingBuffersSize) {
    for (const std::size_t row : {32736, 32767, 32768, 32769, 65536, 100001}) {
        expect_exact_bytes({2, 2, 2, 2, 4, 0.0}, row, CopyRoute::staged, 1);
    }
}

TEST(CombineSender, FragmentsWithMoreRowsThanOneCopyTakes) {
    expect_exact_bytes({1, 1, 2, 2500, 4, 0.0}, 1, CopyRoute::staged, 1);
}

// Controls: the tests detect errors.
TEST(CombineSender, DetectsADroppedRow) {
    SenderWorld world({2, 2, 2, 3, 5, 0.0}, 40);
    auto& lengths = world.plans()[0].length_table;
    *std::ranges::find_if(lengths, [](auto length) { return length > 0; }) -= 1;
    for (int pe = 0; pe < 2; ++pe) world.send(pe, 7, CopyRoute::direct, 2);
    EXPECT_NE(world.wrong(0, 7) + world.wrong(1, 7), "");
}

TEST(CombineSender, DetectsTwoSwappedRows) {
    SenderWorld world({1, 2, 2, 3, 5, 0.0}, 40);
    world.send(0, 7, CopyRoute::direct, 2);
    ASSERT_EQ(world.wrong(0, 7), "");
    std::byte* first = world.world().base(0) + world.layout().slot(7, 0).value();
    std::swap_ranges(first, first + 40, world.world().base(0) + world.layout().slot(7, 1).value());
    EXPECT_NE(world.wrong(0, 7), "");
}

TEST(CombineSender, DetectsAStaleEpoch) {
    SenderWorld world({2, 4, 2, 3, 5}, 40);
    world.send(0, 7, CopyRoute::direct, 2);
    world.send(1, 6, CopyRoute::direct, 2);
    EXPECT_NE(world.wrong(0, 7), "");
}

}  // namespace
}  // namespace npushmem::moe
