// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/virtual_time.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/npu/time/simulation_state.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/device_model.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
    const auto model = DeviceModel::parse(text);
    EXPECT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.status().code(), Code::config);
    return model.status().message();
}

TEST(DeviceModel, HasDefaults) {
    const auto model = DeviceModel::parse("");
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model.value().gm_rate, 1200);
    EXPECT_EQ(model.value().hccs_rate, 28);
    EXPECT_EQ(model.value().group, 8);
}

TEST(DeviceModel, ParseReadsTheOutputOfText) {
    DeviceModel model;
    model.flag = 7.5;
    model.group = 4;
    const auto back = DeviceModel::parse(model.text());
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value().flag, 7.5);
    EXPECT_EQ(back.value().group, 4);
    EXPECT_EQ(back.value().text(), model.text());
}

TEST(DeviceModel, ErrorsReportTheLineAndTheValue) {
    EXPECT_THAT(refusal("gm_rate = 1\n\n# a comment\nnonsense"), AllOf(HasSubstr("line 4"), HasSubstr("'nonsense'")));
    EXPECT_THAT(refusal("gm_rate = fast"), AllOf(HasSubstr("line 1"), HasSubstr("'fast': expected a rate above 0")));
    EXPECT_THAT(refusal("hccs_rate = 0"), HasSubstr("'0': expected a rate above 0"));
    EXPECT_THAT(refusal("flag = -1"), HasSubstr("'-1': expected a time"));
    EXPECT_THAT(refusal("flag = nan"), HasSubstr("'nan': expected a time"));
    EXPECT_THAT(refusal("group = 0"), HasSubstr("1 to 4096"));
    EXPECT_THAT(refusal("colour = 5"), AllOf(HasSubstr("unknown name 'colour'"), HasSubstr("vector_rate")));
    EXPECT_THAT(DeviceModel::read("/nowhere/device.txt").status().message(),
                HasSubstr("cannot read the device model /nowhere/device.txt: No such file"));
    EXPECT_THAT(DeviceModel::read("/").status().message(), HasSubstr("cannot read the device model /: Is a directory"));
}

TEST(SharedBandwidth, OneUserGetsTheFullRate) {
    time::SharedBandwidth rate(2);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 2000), 1000);
    EXPECT_DOUBLE_EQ(rate.reserve(5000, 20), 5010);
}

TEST(SharedBandwidth, ConcurrentUsersShareTheRate) {
    time::SharedBandwidth rate(1);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 1280);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 2560);
}

TEST(SharedBandwidth, ReservesAnEarlierTimeThatIsFree) {
    time::SharedBandwidth rate(1);
    EXPECT_DOUBLE_EQ(rate.reserve(12800, 1280), 14080);
    EXPECT_DOUBLE_EQ(rate.reserve(0, 1280), 1280);
}

using fakes::ArrayPe;
using fakes::SymmetricArray;

// Round numbers: memory and copies of 10 bytes per ns, links of 1.
DeviceModel round_model() {
    DeviceModel model;
    model.gm_rate = 100;
    model.copy_rate = 10;
    model.vector_rate = 100;
    model.hccs_rate = 1;
    model.gm_latency = 100;
    model.vector_latency = 10;
    model.issue = 1;
    model.flag = 5;
    model.core_barrier = 50;
    return model;
}

// PEs of one block of one core, in one thread.
class Virtual : public ::testing::Test {
protected:
    static constexpr std::size_t floats = 250;  // 1000 bytes
    static constexpr std::size_t copied = 248;  // of whole 32 bytes: 992

    // Returns the virtual nanoseconds of each PE.
    std::vector<double> run(int pes, const CheckedJob::Kernel& kernel, int blocks = 1) {
        CheckedJobConfig config{.pes = pes, .check = false};
        config.schedule.kind = Schedule::Kind::eager;
        config.device.vector_cores = 1;
        job_ = CheckedJob::create(config).value();
        data_ = job_->allocate<float>(64 * floats);
        word_ = job_->allocate<std::uint64_t>(1);
        time_.reset();
        LaunchConfig launch(blocks);
        launch.hooks = time_.hooks();
        const CheckReport report = job_->run(launch, kernel);
        EXPECT_TRUE(report.status.ok()) << report.status.message();
        std::vector<double> out;
        for (const auto& pe : time_.report().pes) out.push_back(pe.seconds * 1e9);
        return out;
    }
    float* data(const Core& core) { return job_->at(core.my_pe(), data_); }
    std::uint64_t* word(const Core& core) { return job_->at(core.my_pe(), word_); }
    void copy_in(Core& core) {
        const auto tile = core.ub_alloc<float>(copied);
        core.data_copy(tile, gm(data(core), copied), copied);
    }

    VirtualTime time_{round_model()};
    std::unique_ptr<CheckedJob> job_;
    float* data_ = nullptr;
    std::uint64_t* word_ = nullptr;
};

TEST_F(Virtual, ACopyTakesLatencyAndRate) {
    const auto ns = run(1, [&](Core& core) { copy_in(core); });
    EXPECT_NEAR(ns[0], 1 + 99.2 + 100, 1e-6);
}

TEST_F(Virtual, PrintedLinesHaveTheTimeOfTheScalarPipe) {
    testing::internal::CaptureStdout();
    const std::vector<double> times = run(1, [&](Core& core) {
        core.print("begin");
        copy_in(core);
        core.pipe_barrier<Pipe::all>();
        core.print("end");
    });
    const std::string output = testing::internal::GetCapturedStdout();
    EXPECT_EQ(output, fmt::format("[PE 0 core 0, 0.000 us] begin\n[PE 0 core 0, {:.3f} us] end\n", times[0] / 1e3));
}

TEST_F(Virtual, CommandsOfOnePipeAreSerialAndPipesRunConcurrently) {
    const auto one_pipe = run(1, [&](Core& core) {
        copy_in(core);
        copy_in(core);
    });
    EXPECT_NEAR(one_pipe[0], 1 + 2 * 199.2, 1e-6);
    const auto two_pipes = run(1, [&](Core& core) {
        copy_in(core);
        core.put(data(core) + 1024, data(core), copied, 0);
    });
    EXPECT_LT(two_pipes[0], 1 + 1.5 * 199.2);
}

TEST_F(Virtual, AFlagMakesAPipeWait) {
    const auto ns = run(1, [&](Core& core) {
        const auto tile = core.ub_alloc<float>(copied);
        core.data_copy(tile, gm(data(core), copied), copied);
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
        core.add(tile, tile, tile, copied);
    });
    EXPECT_NEAR(ns[0], 1 + 199.2 + 5 + 10 + 9.92, 1e-6);
    const VirtualReport::Pe pe = time_.report().pes.at(0);
    EXPECT_NEAR(pe.busy[2], 199.2 / ns[0], 1e-6) << "MTE2";
    EXPECT_NEAR(pe.busy[1], 19.92 / ns[0], 1e-6) << "V";
    EXPECT_EQ(pe.busy[3], 0) << "MTE3";
    EXPECT_THAT(time_.report().text(), ::testing::HasSubstr("MTE2 %"));
}

// Twenty cores could copy 200 bytes per ns; memory gives 100.
TEST_F(Virtual, CoresShareTheMemory) {
    const auto ns = run(
        1,
        [&](Core& core) {
            for (int i = 0; i < 10; ++i) {
                core.ub_release(0);
                copy_in(core);
            }
        },
        20);
    EXPECT_GE(ns[0], 20 * 9920 / 100.0);
    EXPECT_LE(ns[0], 20 * 9920 / 100.0 + 10 * 101 + 1000);
}

TEST_F(Virtual, TheCoreBarrierEndsWhenTheLastCoreArrives) {
    const auto ns = run(
        1,
        [&](Core& core) {
            if (core.index() == 1) core.quiet();
            core.core_barrier();
        },
        2);
    EXPECT_NEAR(ns[0], 100 + 50, 1e-6);
}

TEST_F(Virtual, APutToAPeerUsesTheLink) {
    const auto ns = run(2, [&](Core& core) {
        if (core.my_pe() == 0) core.put(data(core), data(core), copied, 1);
    });
    EXPECT_NEAR(ns[0], 1 + 992 + 1000, 1e-6);
    EXPECT_EQ(ns[1], 0);
}

TEST_F(Virtual, LinksAreBusyAsLongAsTheirBytesTake) {
    const auto ns = run(9, [&](Core& core) {
        if (core.my_pe() == 0) core.put(data(core), data(core), copied, 1);
        if (core.my_pe() == 0) core.put(data(core), data(core), copied / 2, 8);
    });
    const VirtualReport report = time_.report();
    ASSERT_EQ(report.links.size(), 3U);
    const auto busy = [&](int from, int to) {
        for (const auto& link : report.links) {
            if (link.from == from && link.to == to) return std::pair(link.bytes, link.busy * ns[0]);
        }
        return std::pair(-1.0, -1.0);
    };
    EXPECT_EQ(busy(0, 1).first, 992);
    EXPECT_NEAR(busy(0, 1).second, 992, 1e-6) << "one byte per ns";
    EXPECT_EQ(busy(0, -1).first, 496);
    EXPECT_NEAR(busy(0, -1).second, 496 / 28.0, 1e-6) << "the switch has its own rate";
    EXPECT_EQ(busy(-1, 8), busy(0, -1));
}

TEST_F(Virtual, TheSwitchIsSlowerThanALink) {
    const auto put_to = [&](int pe) {
        return run(9, [&, pe](Core& core) {
            if (core.my_pe() == 0) core.put(data(core), data(core), 1, pe);
        })[0];
    };
    EXPECT_NEAR(put_to(8) - put_to(7), 2000 - 1000 - 4 + 0.4, 1e-6) << "its rate here is above that of the copy";
}

TEST_F(Virtual, AWaitForASignalEndsAfterItsSender) {
    const auto ns = run(2, [&](Core& core) {
        if (core.my_pe() == 0) {
            core.quiet();
            core.signal_set_on(word(core), 1, 1);
        } else {
            core.signal_wait_until(word(core), Compare::equal, 1, 0);
        }
    });
    EXPECT_NEAR(ns[0], 100 + 1, 1e-6);
    EXPECT_NEAR(ns[1], ns[0] + 1000 + 100, 1e-6) << "over the link, and one look at the own memory";
}

// Copies over links let other cores run without reporting the memory that they change. A core that polls must still run
// again.
TEST_F(Virtual, APollAfterManyCopiesReadsTheStoreOfThePeer) {
    (void)run(2, [&](Core& core) {
        const int puts = core.my_pe() == 0 ? 20 : 60;
        for (int i = 0; i < puts; ++i) core.put(data(core), data(core), 8, 1 - core.my_pe());
        if (core.my_pe() == 1) {
            core.store(core.remote(word(core), 0), 1);
            return core.dcci(core.remote(word(core), 0), 8);
        }
        while (core.load(word(core)) == 0) core.dcci(word(core), 8);
    });
}

// Each core polls for the word that the other stores after its own poll; no core does anything else.
TEST_F(Virtual, TwoCoresMayPollInAlternation) {
    (void)run(2, [&](Core& core) {
        std::uint64_t* const theirs = core.remote(word(core), 1 - core.my_pe());
        for (std::uint64_t round = 1; round <= 500; ++round) {
            if (core.my_pe() == 0) core.store(theirs, round);
            while (core.load(word(core)) != round) core.dcci(word(core), 8);
            if (core.my_pe() == 1) core.store(theirs, round);
        }
    });
}

TEST_F(Virtual, AnEndlessPollIsADeadlock) {
    CheckedJobConfig config{.pes = 2, .check = false};
    config.schedule.kind = Schedule::Kind::eager;
    const auto job = CheckedJob::create(config).value();
    auto* word = job->allocate<std::uint64_t>(1);
    LaunchConfig launch(1);
    launch.hooks = time_.hooks();
    const CheckReport report = job->run(launch, [&](Core& core) {
        if (core.my_pe() == 0) return;
        while (core.load(job->at(1, word)) == 0) core.dcci(job->at(1, word), 8);
    });
    EXPECT_EQ(report.status.code(), Code::timeout);
    EXPECT_THAT(report.status.message(), ::testing::HasSubstr("polls memory that nobody changes any more"));
}

TEST_F(Virtual, TheSameKernelTakesTheSameTime) {
    const auto kernel = [&](Core& core) {
        copy_in(core);
        core.core_barrier();
        core.put_signal(data(core), data(core), copied, word(core), 1, 1 - core.my_pe());
        core.signal_wait_until(word(core), Compare::greater_equal, 1, 1 - core.my_pe());
        static_cast<void>(core.atomic_fetch_add(core.remote(word(core), 1 - core.my_pe()), 1));
    };
    const auto first = run(2, kernel, 4);
    EXPECT_GT(first[0], 2000);
    EXPECT_EQ(run(2, kernel, 4), first);
}

TEST_F(Virtual, TheResultsEqualThoseOfFastMode) {
    (void)run(2, [&](Core& core) {
        core.store(data(core), 1.0F + static_cast<float>(core.my_pe()));
        core.dcci(data(core));
        core.put_signal(data(core) + 8, data(core), 1, word(core), 5, 1 - core.my_pe());
        core.signal_wait_until(word(core), Compare::equal, 5);
        core.signal_add_on(word(core), 2, core.my_pe());
        EXPECT_EQ(core.signal_fetch(word(core)), 7U);
        EXPECT_EQ(core.load(data(core) + 8), 2.0F - static_cast<float>(core.my_pe()));
    });
}

TEST_F(Virtual, TheTimelineIsATraceOfCommandsThatDoNotOverlapInAPipe) {
    (void)run(
        2,
        [&](Core& core) {
            copy_in(core);
            core.core_barrier();
            core.put(data(core) + 512, data(core), copied, 1 - core.my_pe());
        },
        2);
    std::ostringstream text;
    time_.write_timeline(text);
    const auto trace = nlohmann::json::parse(text.str());
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
    std::map<std::string, int> named;
    for (const auto& event : trace.at("traceEvents")) {
        ++named[event.at("name")];
        if (event.at("ph") != "X") continue;
        const double begin = event.at("ts");
        const double length = event.at("dur");
        EXPECT_GE(length, 0);
        threads[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + length);
    }
    EXPECT_EQ(named["data_copy"], 4);
    EXPECT_EQ(named["put"], 4);
    EXPECT_EQ(named["process_name"], 2);
    EXPECT_EQ(named["thread_name"], 2 * 2 * 4);
    EXPECT_EQ(threads.size(), 2U * 2 * 3) << "S, MTE2 and MTE3 of each core";
    constexpr double rounding = 0.0015;
    for (auto& [thread, spans] : threads) {
        std::sort(spans.begin(), spans.end());
        for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second - rounding);
    }
}

TEST(VirtualTime, CountsOnlyLaunchesWithItsHooks) {
    SymmetricArray array(2, 65536);
    const ArrayPe pe(array, 0);
    VirtualTime time;
    const auto kernel = [&](Core& core) { core.put(array.at<float>(0), array.at<float>(0, 4096), 64, 1); };
    ASSERT_TRUE(pe.run(1, kernel).ok());
    EXPECT_TRUE(time.report().pes.empty());
    LaunchConfig config(1);
    config.hooks = time.hooks();
    ASSERT_TRUE(pe.run(config, kernel).ok());
    const double once = time.report().seconds();
    EXPECT_GT(once, 1e-6) << "the link's latency";
    ASSERT_TRUE(pe.run(config, kernel).ok());
    EXPECT_NEAR(time.report().seconds(), 2 * once, 1e-7) << "launches follow each other";
    time.reset();
    EXPECT_TRUE(time.report().pes.empty());
    std::ostringstream text;
    time.write_timeline(text);
    EXPECT_TRUE(nlohmann::json::parse(text.str()).at("traceEvents").empty());
}

TEST(VirtualTime, AKernelThatThrowsStopsItsClock) {
    SymmetricArray array(1, 4096);
    const ArrayPe pe(array, 0);
    VirtualTime time;
    LaunchConfig config(1);
    config.hooks = time.hooks();
    EXPECT_EQ(pe.run(config,
                     [](Core& core) {
                         core.quiet();
                         throw KernelError(Code::argument, "no");
                     })
                  .code(),
              Code::argument);
    EXPECT_EQ(time.report().pes.at(0).cores, 2);
}

}  // namespace
}  // namespace npushmem::npu
