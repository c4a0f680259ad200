// SPDX-License-Identifier: BSD-3-Clause
// The arrows of the timeline, from the update of a word to the wait that it ended.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/npu/time/simulation_state.hpp"
#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/virtual_time.hpp"

namespace npushmem::npu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double rounding = 0.0011;  // us; the file has nanoseconds

struct Slice {
    std::string name;
    int pid;
    int tid;
    double begin;
    double end;
};

// One point of an arrow with the event that contains it.
struct Point {
    std::string phase;
    double at;
    Slice slice;
};

using Arrow = std::vector<Point>;

class TimelineFlow : public ::testing::Test {
protected:
    static DeviceModel model() {
        DeviceModel model;
        model.gm_latency = 100;
        model.hccs_latency = 1000;
        model.issue = 1;
        return model;
    }

    // Runs a kernel on PEs of one core each, and reads the timeline.
    void run(int pes, const CheckedJob::Kernel& kernel) {
        CheckedJobConfig config{.pes = pes, .check = false};
        config.schedule.kind = Schedule::Kind::eager;
        config.device.vector_cores = 1;
        job_ = CheckedJob::create(config).value();
        words_ = job_->allocate<std::uint64_t>(64);
        state_ = job_->allocate<BarrierState>(1);
        VirtualTime time(model());
        LaunchConfig launch(1);
        launch.hooks = time.hooks();
        const CheckReport report = job_->run(launch, kernel);
        ASSERT_TRUE(report.status.ok()) << report.status.message();
        std::ostringstream text;
        time.write_timeline(text);
        read(nlohmann::json::parse(text.str()).at("traceEvents"));
    }

    // Fails the test for a point outside of all events of its pipe, and for an arrow that runs backwards.
    void read(const nlohmann::json& events) {
        for (const auto& e : events) {
            if (e.at("ph") != "X") continue;
            const double begin = e.at("ts");
            slices_.push_back({e.at("name"), e.at("pid"), e.at("tid"), begin, begin + e.at("dur").get<double>()});
        }
        std::map<int, Arrow> arrows;
        for (const auto& e : events) {
            const std::string phase = e.at("ph");
            if (phase != "s" && phase != "t" && phase != "f") continue;
            arrows[e.at("id").get<int>()].push_back({phase, e.at("ts"), slice_at(e)});
        }
        for (const auto& [id, arrow] : arrows) {
            for (std::size_t i = 1; i < arrow.size(); ++i) EXPECT_LE(arrow[i - 1].at, arrow[i].at) << "arrow " << id;
            EXPECT_LT(arrow.front().at, arrow.back().slice.end) << "arrow " << id;
            EXPECT_EQ(arrow.back().slice.name, "wait");
            arrows_.push_back(arrow);
        }
    }

    [[nodiscard]] Slice slice_at(const nlohmann::json& point) const {
        const double at = point.at("ts");
        for (const Slice& slice : slices_) {
            const bool there = slice.pid == point.at("pid") && slice.tid == point.at("tid");
            if (there && slice.begin - rounding <= at && at < slice.end) return slice;
        }
        ADD_FAILURE() << point << " lies in no event";
        return {};
    }

    static std::vector<std::string> names(const Arrow& arrow) {
        std::vector<std::string> out;
        for (const Point& point : arrow) out.push_back(point.phase + " " + point.slice.name);
        return out;
    }

    std::uint64_t* word(const Core& core, int index = 0) { return job_->at(core.my_pe(), words_) + index; }

    std::unique_ptr<CheckedJob> job_;
    std::uint64_t* words_ = nullptr;
    BarrierState* state_ = nullptr;
    std::vector<Slice> slices_;
    std::vector<Arrow> arrows_;
};

TEST_F(TimelineFlow, LeadsFromASignalToTheWaitThatItEnds) {
    run(2, [&](Core& core) {
        if (core.my_pe() == 0) core.signal_set_on(word(core), 1, 1);
        if (core.my_pe() == 1) core.signal_wait_until(word(core), Compare::equal, 1, 0);
    });
    ASSERT_THAT(arrows_, SizeIs(1));
    EXPECT_THAT(names(arrows_[0]), ElementsAre("s signal", "f wait"));
    EXPECT_EQ(arrows_[0][0].slice.pid, 0);
    EXPECT_EQ(arrows_[0][1].slice.pid, 1);
}

TEST_F(TimelineFlow, BeginsAtThePutOfAPutSignal) {
    run(2, [&](Core& core) {
        if (core.my_pe() == 0) core.put_signal(word(core, 16), word(core, 32), 8, word(core), 7, 1);
        if (core.my_pe() == 1) core.signal_wait_until(word(core), Compare::equal, 7, 0);
    });
    ASSERT_THAT(arrows_, SizeIs(1));
    EXPECT_THAT(names(arrows_[0]), ElementsAre("s put", "t signal", "f wait"));
    EXPECT_NE(arrows_[0][0].slice.tid, arrows_[0][1].slice.tid) << "the put is in MTE3";
}

// The second signal goes to another PE than the put.
TEST_F(TimelineFlow, ASignalToAnotherPeDoesNotBeginAtThePut) {
    run(3, [&](Core& core) {
        if (core.my_pe() == 0) core.put(word(core, 16), word(core, 32), 8, 1);
        if (core.my_pe() == 0) core.signal_set_on(word(core), 1, 2);
        if (core.my_pe() == 2) core.signal_wait_until(word(core), Compare::equal, 1, 0);
    });
    ASSERT_THAT(arrows_, SizeIs(1));
    EXPECT_THAT(names(arrows_[0]), ElementsAre("s signal", "f wait"));
}

TEST_F(TimelineFlow, AValueThatWasThereBeforeHasNoArrow) {
    run(2, [&](Core& core) {
        if (core.my_pe() == 0) core.signal_set_on(word(core), 1, 1);
        if (core.my_pe() == 0) return;
        core.signal_wait_until(word(core, 8), Compare::equal, 0);
        for (int i = 0; i < 20; ++i) core.quiet();  // 2000 ns, longer than the way of the signal
        core.signal_wait_until(word(core), Compare::equal, 1, 0);
    });
    EXPECT_EQ(std::count_if(slices_.begin(), slices_.end(), [](const Slice& one) { return one.name == "wait"; }), 2);
    EXPECT_THAT(arrows_, IsEmpty());
}

TEST_F(TimelineFlow, BeginsAtTheLastOfSeveralUpdates) {
    run(2, [&](Core& core) {
        if (core.my_pe() == 0) {
            for (int i = 0; i < 3; ++i) {
                core.quiet();
                core.signal_add_on(word(core), 1, 1);
            }
        } else {
            core.signal_wait_until(word(core), Compare::greater_equal, 3, 0);
        }
    });
    ASSERT_THAT(arrows_, SizeIs(1));
    double last = 0;
    for (const Slice& slice : slices_)
        if (slice.name == "signal") last = std::max(last, slice.begin);
    EXPECT_NEAR(arrows_[0][0].at, last, rounding);
    EXPECT_NEAR(last, 0.302, rounding) << "after three quiets of 100 ns and two signals of 1 ns";
}

TEST_F(TimelineFlow, LeadsFromAnAtomicToTheWait) {
    run(2, [&](Core& core) {
        if (core.my_pe() == 0) static_cast<void>(core.atomic_fetch_add(core.remote(word(core), 1), std::uint64_t{2}));
        if (core.my_pe() == 1) core.signal_wait_until(word(core), Compare::equal, 2, 0);
    });
    ASSERT_THAT(arrows_, SizeIs(1));
    EXPECT_THAT(names(arrows_[0]), ElementsAre("s atomic", "f wait"));
}

TEST_F(TimelineFlow, LeadsFromASmallPutToTheWait) {
    const auto send = [this](std::size_t count) {
        slices_.clear();
        arrows_.clear();
        run(2, [&](Core& core) {
            if (core.my_pe() == 0) {
                for (std::size_t i = 0; i < count; ++i) core.store(word(core, 16 + static_cast<int>(i)), i + 1);
                core.dcci(word(core, 16), count * sizeof(std::uint64_t));
                core.put(word(core), word(core, 16), count, 1);
            } else {
                core.signal_wait_until(word(core), Compare::equal, 1, 0);
            }
        });
    };
    send(8);
    ASSERT_THAT(arrows_, SizeIs(1));
    EXPECT_THAT(names(arrows_[0]), ElementsAre("s put", "f wait"));
    EXPECT_GE(arrows_[0][1].slice.end, arrows_[0][0].slice.end) << "the wait cannot end before the put";
    send(9);
    EXPECT_THAT(arrows_, IsEmpty()) << "more than 64 bytes are taken as data";
}

// A wait that only polls takes 100 ns; a longer one waited for a peer.
TEST_F(TimelineFlow, EveryWaitOfABarrierThatTookTimeHasOneArrow) {
    constexpr int pes = 5;
    run(pes, [&](Core& core) {
        for (int i = 0; i < 3 * core.my_pe(); ++i) core.quiet();
        for (int i = 0; i < 2; ++i)
            sync_with_choice(core, BarrierChoice::parse("v1").value(), {0, 1, pes}, job_->at(core.my_pe(), state_));
    });
    std::size_t waits = 0;
    for (const Slice& slice : slices_) {
        if (slice.name != "wait") continue;
        const bool waited = slice.end - slice.begin > 0.1 + rounding;
        const auto ends_here = [&](const Arrow& arrow) {
            const Slice& end = arrow.back().slice;
            return end.pid == slice.pid && end.tid == slice.tid && end.begin == slice.begin;
        };
        EXPECT_EQ(std::count_if(arrows_.begin(), arrows_.end(), ends_here), waited ? 1 : 0)
            << "PE " << slice.pid << " at " << slice.begin;
        if (waited) ++waits;
    }
    EXPECT_GT(waits, 0U);
    EXPECT_THAT(arrows_, SizeIs(waits));
}

TEST(SimulationState, FindsTheUpdateThatWroteTheValueSeen) {
    time::SimulationState state{DeviceModel{}};
    const std::uint64_t word = 0;
    const time::TimelinePoint from{0, 0, Pipe::scalar, 10};
    EXPECT_FALSE(state.find_update(&word, 0)) << "nobody wrote it";
    state.update(&word, {1, 20, from});
    state.update(&word, {2, 30, from});
    EXPECT_FALSE(state.find_update(&word, 1)) << "replaced";
    ASSERT_TRUE(state.find_update(&word, 2));
    EXPECT_EQ(state.find_update(&word, 2)->when, 30);
}

TEST(SimulationState, RecordsNoFlowThatTheTimelineHasNoRoomFor) {
    time::SimulationState state{DeviceModel{}};
    const time::WordUpdate update{1, 20, {0, 0, Pipe::scalar, 10}};
    const time::TraceEvent wait{"wait", 1, 0, Pipe::scalar, 15, 25};
    state.record_wait(wait, update);
    EXPECT_THAT(state.flows(), SizeIs(1));
    for (int i = 0; i < 1'000'000; ++i) state.record({"issue", 0, 0, Pipe::scalar, 0, 1});
    state.record_wait(wait, update);
    EXPECT_THAT(state.flows(), SizeIs(1));
}

}  // namespace
}  // namespace npushmem::npu
