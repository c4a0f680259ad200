// SPDX-License-Identifier: BSD-3-Clause
// The packing sender: rejections before any byte moves, and every byte of both plans.
#include <gmock/gmock.h>

#include "bench/moe/pack_sender.hpp"
#include "npushmem/npu/device.hpp"
#include "tests/fakes/thread_world.hpp"
#include "tests/unit/bench/moe/pack_case.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PackCheck : public ::testing::Test {
protected:
    Status check(const PackArguments& arguments, PackPlan plan = PackPlan::gather) {
        return check_pack(arguments, Rows{pack_.rows}, plan);
    }
    void expect_refused(const PackArguments& arguments, const char* words, PackPlan plan = PackPlan::gather) {
        EXPECT_THAT(check(arguments, plan).message(), HasSubstr(words));
    }

    PackCase pack_{{.ranks = 2, .experts = 3, .row = 20, .empty = 0}};
    PackArguments good_ = pack_.arguments();
};

TEST_F(PackCheck, AcceptsValidArguments) {
    EXPECT_TRUE(check(good_).ok());
    EXPECT_TRUE(check(good_, PackPlan::reorder).ok());
    good_.ordered = nullptr;
    EXPECT_TRUE(check(good_).ok()) << "plan 2 reorders nothing";
}

TEST_F(PackCheck, RefusesSizesNamingThem) {
    PackArguments bad = good_;
    bad.tables.num_ranks = -3;
    expect_refused(bad, "num_ranks is -3, must be from 1");
    bad = good_;
    bad.tables.num_local_experts = 0;
    expect_refused(bad, "num_local_experts is 0");
    bad = good_;
    bad.row = Bytes{0};
    expect_refused(bad, "a row's bytes is 0");
    bad = good_;
    bad.max_send_len = Rows{0};
    expect_refused(bad, "max_send_len is 0");
    bad = good_;
    bad.tables.lengths = nullptr;
    expect_refused(bad, "length_table is null");
}

TEST_F(PackCheck, RefusesTablesNamingExpertRankAndValue) {
    const auto before = pack_.offsets;
    pack_.offsets[pack_.entry(2, 1)] = 5000;
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("(local 2), rank 1"), HasSubstr("rows 5000..")));
    pack_.offsets = before;
    pack_.offsets[pack_.entry(1, 0)] = pack_.offsets[pack_.entry(0, 0)];
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("belongs both to"), HasSubstr("(local 1), rank 0")));
    pack_.offsets = before;
    pack_.lengths[pack_.entry(0, 1)] = -2;
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("(local 0), rank 1"), HasSubstr("-2 rows")));
}

TEST_F(PackCheck, RefusesMoreThanTheCapacityNamingExpertRankAndValue) {
    PackArguments bad = good_;
    bad.max_send_len = Rows{pack_.capacity - 1};
    const Status status = check(bad);
    EXPECT_EQ(status.code(), Code::range);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("(local 2), rank "),
                                        HasSubstr(std::to_string(pack_.capacity) + " rows would go to rank"),
                                        HasSubstr("capacity of " + std::to_string(pack_.capacity - 1))));
}

TEST_F(PackCheck, RefusesMemoryThatIsMissingOrOverlaps) {
    PackArguments bad = good_;
    bad.x = nullptr;
    expect_refused(bad, "x is null");
    bad = good_;
    bad.tx_buffer = nullptr;
    expect_refused(bad, "tx_buffer is null");
    bad = good_;
    bad.x = bad.tx_buffer + 8;
    expect_refused(bad, "overlaps tx_buffer");
    bad = good_;
    bad.ordered = nullptr;
    expect_refused(bad, "the memory for reordering is null", PackPlan::reorder);
    bad.ordered = bad.tx_buffer;
    expect_refused(bad, "overlaps the memory for reordering", PackPlan::reorder);
}

}  // namespace

// The packing sender, plan 1 and plan 2: every byte, for every kind of row, and nothing written elsewhere.

namespace {

using ::testing::HasSubstr;

class PackSender : public ::testing::Test {
protected:
    // Returns "" or the error.
    std::string run(const PackShape& shape, CopyRoute route, PackPlan plan, int blocks) {
        PackCase pack(shape);
        PackArguments arguments = pack.arguments();
        arguments.route = route;
        if (Status s = launch_pack(stream(), blocks, arguments, Rows{pack.rows}, plan); !s.ok()) return s.message();
        if (Status s = stream().synchronize(); !s.ok()) return s.message();
        return pack.wrong();
    }

    npu::Stream& stream() { return device_->default_stream(); }

    fakes::ThreadWorld world_{1, 4096};
    fakes::ThreadFabric fabric_{world_, 0};
    std::unique_ptr<npu::Device> device_ = std::move(npu::Device::create({}, fabric_)).value();
};

constexpr CopyRoute all_routes[] = {CopyRoute::staged, CopyRoute::direct, CopyRoute::streaming};
constexpr PackPlan both_plans[] = {PackPlan::gather, PackPlan::reorder};

TEST_F(PackSender, EveryRowLengthAndElementSize) {
    for (const std::size_t hidden : {1, 7, 16, 17, 128, 1000, 2048, 2880, 4096, 7168}) {
        for (const std::size_t element : {1, 2, 4}) {
            for (const CopyRoute route : all_routes) {
                const PackShape shape{.ranks = 3, .experts = 2, .row = hidden * element, .seed = hidden + element};
                for (const PackPlan plan : both_plans)
                    ASSERT_EQ(run(shape, route, plan, 2), "") << shape.row << " bytes per row, " << name_of(route);
            }
        }
    }
}

TEST_F(PackSender, EveryNumberOfRanksAndExpertsOnFewCoresAndMany) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 17, 64}) {
        for (const std::int32_t experts : {1, 2, 8, 64}) {
            for (const int blocks : {1, 3, 20}) {
                const PackShape shape{.ranks = ranks, .experts = experts, .row = 34, .seed = 5};
                for (const PackPlan plan : both_plans)
                    ASSERT_EQ(run(shape, CopyRoute::staged, plan, blocks), "")
                        << ranks << " ranks, " << experts << " experts, " << blocks << " blocks";
            }
        }
    }
}

TEST_F(PackSender, ExpertsAndRanksWithoutRows) {
    for (const std::size_t row : {14, 64}) {
        for (const std::int32_t expert : {0, 3}) {
            const PackShape shape{.ranks = 3, .experts = 4, .row = row, .empty = 0, .no_expert = expert, .no_rank = 1};
            EXPECT_EQ(run(shape, CopyRoute::staged, PackPlan::gather, 2), "") << "expert " << expert << " is empty";
        }
        EXPECT_EQ(run({.ranks = 3, .experts = 4, .row = row, .empty = 1}, CopyRoute::staged, PackPlan::gather, 2), "");
    }
}

TEST_F(PackSender, FragmentsAndRowsAroundTheBuffersSize) {
    for (const std::size_t row : {1, 14, 32}) {
        const PackShape shape{.ranks = 2, .experts = 2, .row = row, .seed = row, .most = 9000, .empty = 0};
        EXPECT_EQ(run(shape, CopyRoute::staged, PackPlan::gather, 1), "") << row;
    }
    for (const std::size_t row : {21845, 32767, 65504, 65535, 65536, 65537, 131072, 200001}) {
        const PackShape shape{.ranks = 2, .experts = 2, .row = row, .seed = row, .empty = 0};
        EXPECT_EQ(run(shape, CopyRoute::staged, PackPlan::gather, 1), "") << row;
    }
}

TEST_F(PackSender, MoreExpertsThanOneBatchOfTableColumns) {
    const PackShape shape{.ranks = 2, .experts = 600, .row = 10};
    EXPECT_EQ(run(shape, CopyRoute::staged, PackPlan::gather, 1), "");
}

TEST_F(PackSender, TheKernelMoeCombineSenderPacksAllRows) {
    PackCase pack({.ranks = 3, .experts = 4, .row = 2000});
    pack.packed.clear();
    const std::byte* x = pack.x.data();
    const Status status = npu::launch(stream(), 2, moe_combine_sender, x, pack.tx.data(), pack.offsets.data(),
                                      pack.lengths.data(), 4, 3, 1000, static_cast<std::int32_t>(pack.capacity));
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(stream().synchronize().ok());
    EXPECT_EQ(pack.wrong(), "");
}

// Without the host's check: the kernel itself does not write beyond a region.
TEST_F(PackSender, TheKernelRefusesToWriteBeyondARegion) {
    for (const std::int32_t length : {1000, -1}) {
        PackCase pack({.ranks = 2, .experts = 2, .row = 64, .empty = 0});
        pack.lengths[pack.entry(1, 1)] = length;
        ASSERT_TRUE(npu::launch(stream(), 1, pack_rows, pack.arguments()).ok());
        const Status status = stream().synchronize();
        EXPECT_EQ(status.code(), Code::range);
        EXPECT_THAT(status.message(), HasSubstr("local expert 1, rank 1: " + std::to_string(length) + " rows"));
        for (std::size_t i = pack.arguments().tx_bytes().value(); i < pack.tx.size(); ++i)
            ASSERT_EQ(pack.tx[i], PackCase::untouched);
    }
}

// Controls: the tests detect errors.
TEST_F(PackSender, DetectsADroppedRowAndTwoSwappedFragments) {
    PackCase pack({.ranks = 2, .experts = 2, .row = 40, .empty = 0});
    pack.lengths[0] -= 1;
    ASSERT_TRUE(launch_pack(stream(), 1, pack.arguments(), Rows{pack.rows}).ok());
    ASSERT_TRUE(stream().synchronize().ok());
    EXPECT_EQ(pack.wrong(), "");
    pack.lengths[0] += 1;
    EXPECT_NE(pack.wrong(), "") << "a row is missing";
    PackCase swapped({.ranks = 2, .experts = 2, .row = 40, .most = 1, .empty = 0});
    std::swap(swapped.offsets[0], swapped.offsets[2]);
    ASSERT_TRUE(launch_pack(stream(), 1, swapped.arguments(), Rows{swapped.rows}).ok());
    ASSERT_TRUE(stream().synchronize().ok());
    std::swap(swapped.offsets[0], swapped.offsets[2]);
    EXPECT_NE(swapped.wrong(), "");
}

}  // namespace

}  // namespace npushmem::moe
