// Barriers as they are often written down, and wrong; exploration must catch them, and pass those of the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "tests/unit/core/npu/fibers.hpp"

namespace npushmem::npu {
namespace {

using testing::HasSubstr;

// Shared by all cores of a job; the job runs on one thread.
struct RoundLog {
    int cores = 0;
    std::vector<int> entered;  // by round

    void enter(std::size_t round) {
        if (round >= entered.size()) entered.resize(round + 1);
        ++entered[round];
    }
    void leave(std::size_t round) const {
        if (entered[round] == cores) return;
        throw KernelError(Code::protocol, "left round " + std::to_string(round) + " when " +
                                              std::to_string(entered[round]) + " of " + std::to_string(cores) +
                                              " cores had entered it");
    }
};

using Barrier = std::function<void(Core&, const TeamView&, BarrierState*)>;

CheckReport explore(int pes, int cores, const Barrier& barrier, const char* schedule, std::size_t rounds = 1) {
    CheckedJobConfig config{.pes = pes, .heap_bytes = 2 * sizeof(BarrierState)};
    config.schedule = Schedule::parse(schedule).value();
    config.device.blocks = cores;
    config.device.vector_cores = 1;
    config.device.stack_bytes = 64 * 1024;
    const auto job = CheckedJob::create(config).value();
    auto* state = job->allocate<BarrierState>(1);
    RoundLog log;
    job->before_each([&] { log = {pes * cores, {}}; });
    return job->run(cores, [&](Core& core) {
        const TeamView team{0, 1, pes};
        for (std::size_t round = 0; round < rounds; ++round) {
            log.enter(round);
            barrier(core, team, job->at(core.my_pe(), state));
            log.leave(round);
        }
    });
}

// v2 without the core barrier between rounds: each core passes on its own j only.
void v2_without_join(Core& core, const TeamView& team, BarrierState* state, int radix) {
    const int mine = team.index_of(core.my_pe());
    const int j = core.index() + 1;
    core.core_barrier();
    std::size_t slot = 0;
    for (int shift = 1; shift < team.size; shift *= radix, slot += static_cast<std::size_t>(radix - 1)) {
        if (j >= radix || j * shift >= team.size) continue;
        std::uint64_t* word = &state->slots[slot + static_cast<std::size_t>(j - 1)].word;
        core.signal_set_on(word, 1, team.pe((mine + j * shift) % team.size));
        core.signal_wait_until(word, Compare::greater_equal, 1);
    }
    core.core_barrier();
}

// v3 without the last core barrier: a core leaves when its own members have arrived.
void v3_without_trailing(Core& core, const TeamView& team, BarrierState* state) {
    core.core_barrier();
    if (core.index() == 0) core.signal_set(&state->arrival.word, 1);
    for (int i = core.index(); i < team.size; i += core.count()) {
        if (team.pe(i) == core.my_pe()) continue;
        core.signal_wait_until(&core.remote(state, team.pe(i))->arrival.word, Compare::greater_equal, 1);
    }
}

TEST(BrokenBarriers, V2WithoutTheJoinIsCaught) {
    const Barrier broken = [](Core& core, const TeamView& team, BarrierState* state) {
        v2_without_join(core, team, state, 3);
    };
    // Small teams are passed by luck: each member is heard directly.
    const CheckReport direct = explore(3, 2, broken, "explore:1");
    EXPECT_TRUE(direct.status.ok()) << direct.text();
    const CheckReport report = explore(6, 2, broken, "explore:1");
    EXPECT_EQ(report.status.code(), Code::protocol) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("of 12 cores had entered it"));
    EXPECT_THAT(report.schedule, HasSubstr("set aside at ["));
}

TEST(BrokenBarriers, V3WithoutTheTrailingCoreBarrierIsCaught) {
    const CheckReport report = explore(3, 2, v3_without_trailing, "explore:1");
    EXPECT_EQ(report.status.code(), Code::protocol) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("of 6 cores had entered it"));
}

TEST(LibraryBarriers, PassWhereverOneCoreOrSignalIsDelayed) {
    const std::vector<std::pair<const char*, Barrier>> all{
        {"v1", [](Core& core, const TeamView& team, BarrierState* state) { barrier_v1(core, team, state); }},
        {"v2:3", [](Core& core, const TeamView& team, BarrierState* state) { barrier_v2(core, team, state, 3); }},
        {"v2:8", [](Core& core, const TeamView& team, BarrierState* state) { sync_v2(core, team, state); }},
        {"v3", [](Core& core, const TeamView& team, BarrierState* state) { sync_v3(core, team, state); }}};
    for (const auto& [name, barrier] : all) {
        for (const auto& [pes, cores] : std::vector<std::pair<int, int>>{{2, 1}, {3, 2}, {6, 2}}) {
            if (test::cores_are_costly && pes > 2) continue;
            const CheckReport report = explore(pes, cores, barrier, "explore:1", 3);
            EXPECT_TRUE(report.clean() && report.complete) << name << " " << report.text();
            EXPECT_GT(report.schedules, 10U);
        }
        for (const char* schedule : {"eager", "lazy", "random:5", "random:6", "random:7"}) {
            const CheckReport report = explore(test::cores_are_costly ? 3 : 9, 3, barrier, schedule, 5);
            EXPECT_TRUE(report.clean()) << name << " " << report.text();
        }
    }
}

TEST(LibraryBarriers, TwoDelaysAtOnce) {
    const CheckReport report = explore(
        2, 2, [](Core& core, const TeamView& team, BarrierState* state) { sync_v3(core, team, state); }, "explore:2",
        2);
    EXPECT_TRUE(report.clean() && report.complete) << report.text();
    EXPECT_GT(report.schedules, test::cores_are_costly ? 5U : 500U);
}

}  // namespace
}  // namespace npushmem::npu
