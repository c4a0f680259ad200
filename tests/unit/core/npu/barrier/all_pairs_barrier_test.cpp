// SPDX-License-Identifier: BSD-3-Clause
// Barrier v3 among several devices in several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::on_all_pes;
using fakes::SymmetricArray;
using testing::HasSubstr;

constexpr std::size_t data_at = sizeof(BarrierState);

// Counts the cores (of all PEs) that have entered. Every core checks it: no core leaves round r before all have entered
// it, and no core enters round r + 1 before all cores of its PE have left r.
struct Log {
    std::atomic<std::uint64_t> entered{0};
    std::uint64_t cores = 0;

    void enter() { entered.fetch_add(1); }
    void check_leave(std::uint64_t round) { EXPECT_GE(entered.load(), round * cores); }
};

// Also checks that all PEs see each PE's earlier stores after the barrier.
void run_rounds(Core& core, const TeamView& team, SymmetricArray& array, Log& log, std::uint64_t rounds) {
    auto* state = array.at<BarrierState>(core.my_pe());
    auto* data = array.at<std::uint64_t>(core.my_pe(), data_at);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        if (core.index() == core.count() - 1) core.store(data + round % 2, round);
        log.enter();
        barrier_v3(core, team, state);
        log.check_leave(round);
        for (int i = 0; i < team.size; ++i) ASSERT_EQ(core.load(core.remote(data + round % 2, team.pe(i))), round);
    }
}

struct Matrix {
    int pes;
    TeamView team;
    int cores;
};

void PrintTo(const Matrix& m, std::ostream* out) {
    *out << m.pes << " PEs, team " << m.team.start << "+" << m.team.stride << "*" << m.team.size << ", " << m.cores
         << " cores";
}

struct BarrierV3 : testing::TestWithParam<Matrix> {};

TEST_P(BarrierV3, NoCoreLeavesBeforeAllHaveEntered) {
    const auto [pes, team, cores] = GetParam();
    SymmetricArray array(pes, data_at + 64);
    // Cores per PE may differ: every other PE runs one more block.
    const auto cores_of = [&, c = cores](int index) { return c + (index % 2); };
    for (const std::uint64_t before : {0ULL, (1ULL << 32) - 3, (1ULL << 63) - 3}) {
        Log log;
        for (int i = 0; i < team.size; ++i) log.cores += static_cast<std::uint64_t>(cores_of(i));
        for (int pe = 0; pe < pes; ++pe) {
            array.at<BarrierState>(pe)->generation.word = array.at<BarrierState>(pe)->arrival.word = before;
        }
        on_all_pes(team.size, [&, team = team](int index) {
            const ArrayPe pe(array, team.pe(index),
                             {.blocks = 41, .vector_cores = 1, .launch_timeout = std::chrono::seconds(240)});
            const Status status = pe.run(cores_of(index), [&](Core& core) { run_rounds(core, team, array, log, 20); });
            EXPECT_TRUE(status.ok()) << status.message();
        });
        for (int i = 0; i < team.size; ++i) EXPECT_EQ(array.at<BarrierState>(team.pe(i))->generation.word, before + 20);
    }
}

std::vector<Matrix> matrix() {
    std::vector<Matrix> all;
    for (int n = 1; n <= 9; ++n) {
        for (int cores : {1, 2, 8}) all.push_back({n, {0, 1, n}, cores});
    }
    all.push_back({2, {0, 1, 2}, 40});
    all.push_back({9, {1, 3, 3}, 2});
    all.push_back({9, {8, -2, 4}, 7});
    all.push_back({5, {4, 1, 1}, 2});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Teams, BarrierV3, testing::ValuesIn(matrix()));

TEST(BarrierV3State, LayoutIsStableAcrossBuilds) {
    EXPECT_EQ(sizeof(BarrierState), 6400U);
    EXPECT_EQ(offsetof(BarrierState, generation), 0U);
    EXPECT_EQ(offsetof(BarrierState, arrival), 64U);
    EXPECT_EQ(offsetof(BarrierState, slots), 128U);
    EXPECT_EQ(alignof(BarrierState), 64U);
}

TEST(BarrierV3Teams, IndexOfIsTheInverseOfPe) {
    for (const TeamView& team : {TeamView{0, 1, 4}, TeamView{3, 5, 6}, TeamView{9, -2, 5}, TeamView{7, 0, 1}}) {
        for (int i = 0; i < team.size; ++i) EXPECT_EQ(team.index_of(team.pe(i)), i);
        int members = 0;
        for (int pe = -5; pe < 50; ++pe) members += team.index_of(pe) >= 0 ? 1 : 0;
        EXPECT_EQ(members, team.size);
    }
    EXPECT_EQ((TeamView{0, 1, 0}.index_of(0)), -1);
}

TEST(BarrierV3Errors, ReportNonMembersAndMissingPeers) {
    SymmetricArray array(3, data_at);
    const ArrayPe pe(array, 0, {.wait_timeout = std::chrono::milliseconds(3)});
    const auto barrier = [&](const TeamView& team) {
        return pe.run(2, [&](Core& core) { barrier_v3(core, team, array.at<BarrierState>(0)); });
    };
    const Status stranger = barrier({1, 1, 2});
    EXPECT_EQ(stranger.code(), Code::argument);
    EXPECT_THAT(stranger.message(), HasSubstr("PE 0 is not a member of the team of 2 PEs from 1 by 1"));
    const Status late = barrier({0, 2, 2});
    EXPECT_EQ(late.code(), Code::timeout);
    EXPECT_THAT(late.message(), HasSubstr("from PE 2 to be >= 1, last saw 0"));
}

TEST(BarrierV3OnStream, LaterLaunchesBeginAfterAllMembersHaveArrived) {
    constexpr int pes = 3;
    SymmetricArray array(pes, data_at + 64);
    const TeamView team{0, 1, pes};
    on_all_pes(pes, [&](int me) {
        const ArrayPe pe(array, me, {.launch_timeout = std::chrono::seconds(240)});
        auto* mine = array.at<std::uint64_t>(me, data_at);
        for (std::uint64_t round = 1; round <= 50; ++round) {
            EXPECT_TRUE(launch(pe.stream(), 1, [=](Core& core) { core.store(mine, round); }).ok());
            EXPECT_TRUE(barrier_on_device(pe.stream(), team, array.at<BarrierState>(me)).ok());
            EXPECT_TRUE(launch(pe.stream(), 1, [&, round](Core& core) {
                            for (int i = 0; i < pes; ++i) EXPECT_GE(core.load(core.remote(mine, i)), round);
                        }).ok());
            EXPECT_TRUE(barrier_on_device(pe.stream(), team, array.at<BarrierState>(me)).ok());
        }
        EXPECT_TRUE(pe.stream().synchronize().ok());
    });
}

}  // namespace
}  // namespace npushmem::npu
